// Runs with a workspace: what is in /work, what is kept of it, and what never happens to the host.
//
// As root every test runs a second time as an ordinary user who has one id (the last test).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "runtime/plan/host_facts.h"
#include "tests/integration/breakable_sandbox.h"
#include "tests/integration/disk_workspace.h"
#include "tests/integration/fixture.h"
#include "tests/integration/own_ground.h"

namespace sbx::test {
namespace {

using collect::Outcome;
using collect::Status;
using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = policy::kMiB;

std::uint32_t session_index(const policy::RuntimeConfig& config) {
  const std::uint32_t count = plan::read_host_facts(config, 0).id_count;
  return count <= 1 ? 0 : count / 2 + 7;
}

plan::Request shell(std::string script) {
  plan::Request request;
  request.argv = {"/bin/sh", "-c", std::move(script)};
  return request;
}

class WorkspaceRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = BreakableSandbox::open(ground_.config(), "host");
    if (!opened && opened.error().code == ErrorCode::kHost) {
      GTEST_SKIP() << to_string(opened.error()) << "; " << opened.error().fix;
    }
    ASSERT_TRUE(opened) << to_string(opened.error());
    sandbox_ = *std::move(opened);
    limits().wall_seconds = std::chrono::seconds(60);
    disk_.emplace(session_index(ground_.config()));
  }
  void TearDown() override {
    disk_.reset();
    sandbox_.reset();
    const Things left = ground_.leaked();
    EXPECT_TRUE(left.empty()) << "left over:\n" << to_text(left);
  }
  [[nodiscard]] policy::Limits& limits() { return sandbox_->policy().limits; }
  [[nodiscard]] std::unique_ptr<RunInFlight> start(const plan::Request& request) {
    RunHooks hooks;
    hooks.workspace = &*disk_;
    hooks.on_stdout = [this](std::string_view bytes) { said_ += bytes; };
    said_.clear();
    auto run = sandbox_->start(request, 0, std::move(hooks));
    EXPECT_TRUE(run) << to_string(run.error());
    return run ? *std::move(run) : nullptr;
  }
  // Until the program has said something.
  void await_word(RunInFlight& run) {
    while (said_.empty() && !run.done()) turn(run, std::chrono::seconds(10));
  }
  [[nodiscard]] Outcome run(const plan::Request& request) {
    const auto started = start(request);
    EXPECT_TRUE(started && drive(*started, std::chrono::seconds(90)));
    return started ? started->take_outcome() : Outcome{};
  }
  [[nodiscard]] Outcome run(const std::string& script) { return run(shell(script)); }

  OwnGround ground_;
  std::unique_ptr<BreakableSandbox> sandbox_;
  std::optional<DiskWorkspace> disk_;
  std::string said_;
};

void expect_saved(const Outcome& outcome) {
  ASSERT_TRUE(outcome.workspace);
  EXPECT_TRUE(outcome.workspace->saved) << outcome.workspace->reason;
}

TEST_F(WorkspaceRuns, WhatOneRunWritesTheNextFinds) {
  const Outcome first = run("echo one > a; mkdir d; echo two > d/b; ls -A");
  EXPECT_EQ(first.stdout_bytes, "a\nd\n");
  expect_saved(first);
  EXPECT_EQ(first.workspace->size, 8192U);
  EXPECT_EQ(first.workspace->inodes, 4U);
  EXPECT_EQ(disk_->read("d/b"), "two\n");
  const Outcome second = run("cat a d/b && rm a && echo three >> d/b");
  EXPECT_EQ(second.stdout_bytes, "one\ntwo\n");
  expect_saved(second);
  EXPECT_FALSE(disk_->has("a"));
  EXPECT_EQ(disk_->read("d/b"), "two\nthree\n");
}

TEST_F(WorkspaceRuns, ProgramAndInputsAreThereBesideIt) {
  disk_->write("mine", "workspace\n");
  plan::Request request;
  request.language = "bash";
  request.code = "cat /input/given mine; pwd";
  request.files.push_back({"given", "input\n"});
  EXPECT_EQ(run(request).stdout_bytes, "input\nworkspace\n/work\n");
}

TEST_F(WorkspaceRuns, FilesBelongToThePayloadWithTheirModesAndTimes) {
  disk_->write("tool", "#!/bin/sh\necho ran\n");
  ASSERT_EQ(::chmod(disk_->at("tool").c_str(), 0755), 0);
  disk_->write("shared", "x");
  ASSERT_EQ(::chmod(disk_->at("shared").c_str(), 0666), 0);
  const timespec times[2] = {{0, UTIME_OMIT}, {1234567890, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, disk_->at("tool").c_str(), times, 0), 0);
  ASSERT_EQ(::mkdir(disk_->at("d").c_str(), 0750), 0);
  ASSERT_EQ(::symlink("tool", disk_->at("link").c_str()), 0);
  const Outcome outcome =
      run("stat -c '%n %u %g %a %F' . tool shared d link; stat -c %Y tool; ./link; touch d/new");
  EXPECT_EQ(outcome.stdout_bytes,
            ". 65534 65534 755 directory\ntool 65534 65534 755 regular file\n"
            "shared 65534 65534 666 regular file\nd 65534 65534 750 directory\n"
            "link 65534 65534 777 symbolic link\n1234567890\nran\n");
  expect_saved(outcome);
}

TEST_F(WorkspaceRuns, LinksAreKeptAsWhatTheyAre) {
  expect_saved(run("echo x > a; ln a b; ln -s /etc/passwd s; ln -s a t"));
  struct stat a{};
  struct stat b{};
  ASSERT_EQ(::lstat(disk_->at("a").c_str(), &a), 0);
  ASSERT_EQ(::lstat(disk_->at("b").c_str(), &b), 0);
  EXPECT_EQ(a.st_ino, b.st_ino);
  // Writing to one of two names writes the other, also in the next run.
  const Outcome second = run("readlink s t; echo y >> a; cat b");
  EXPECT_EQ(second.stdout_bytes, "/etc/passwd\na\nx\ny\n");
  EXPECT_EQ(disk_->read("b"), "x\ny\n");
}

TEST_F(WorkspaceRuns, HolesAreKeptAndCostNothing) {
  limits().fsize = 1024 * kMiB;
  limits().memory = 64 * kMiB;
  const Outcome first = run("truncate -s 500M hole && printf end >> hole && du -k hole");
  EXPECT_EQ(first.stdout_bytes, "4\thole\n");
  expect_saved(first);
  EXPECT_EQ(first.workspace->size, 4096U);
  const Outcome second = run("stat -c %s hole; du -k hole; tail -c 3 hole");
  EXPECT_EQ(second.stdout_bytes, "524288003\n4\thole\nend");
  expect_saved(second);
}

TEST_F(WorkspaceRuns, ThousandsOfFilesArriveAndAreKept) {
  const Outcome first = run("for i in $(seq 2000); do echo $i > f$i; done");
  expect_saved(first);
  EXPECT_EQ(first.workspace->inodes, 2001U);
  const Outcome second = run("cat f* | sort -n | md5sum; seq 2000 | md5sum; rm f1?*");
  const std::size_t half = second.stdout_bytes.size() / 2;
  EXPECT_EQ(second.stdout_bytes.substr(0, half), second.stdout_bytes.substr(half));
  expect_saved(second);
  EXPECT_EQ(disk_->size().inodes, second.workspace->inodes);
}

TEST_F(WorkspaceRuns, TheBytesCountInTheMemoryLimit) {
  disk_->write("big", std::string(40 * kMiB, 'x'));
  limits().memory = 64 * kMiB;
  const Outcome outcome = run("sleep 0");
  EXPECT_TRUE(outcome.ok());
  ASSERT_TRUE(outcome.usage);
  EXPECT_GE(outcome.usage->memory_peak, 40 * kMiB);
  // The control: what would fit without the workspace is too much with it.
  const Outcome hog = run("head -c 40M /dev/zero | tail -c 40M > /dev/null");
  EXPECT_EQ(hog.status, Status::kOom);
  expect_saved(hog);
}

TEST_F(WorkspaceRuns, OneThatDoesNotFitTheMemoryIsRefusedBeforeTheRun) {
  disk_->write("big", std::string(20 * kMiB, 'x'));
  limits().memory = 20 * kMiB;
  RunHooks hooks;
  hooks.workspace = &*disk_;
  const auto refused = sandbox_->start(shell("true"), 0, std::move(hooks));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().detail, HasSubstr("a workspace of 20M in 2 inodes needs"));
  EXPECT_THAT(refused.error().detail, HasSubstr("the memory limit is 20M"));
}

TEST_F(WorkspaceRuns, OneAtItsQuotaIsFilledAndSavedWhole) {
  limits().work = 8 * kMiB;
  limits().work_inodes = 100;
  const Outcome full =
      run("head -c 100M /dev/zero | tr '\\0' x > big; i=0; "
          "while mkdir d$i 2>/dev/null; do i=$((i+1)); done; stat -c %s big");
  EXPECT_EQ(full.stdout_bytes, "8388608\n");
  expect_saved(full);
  EXPECT_EQ(full.workspace->size, 8 * kMiB);
  EXPECT_EQ(full.workspace->inodes, 100U);
  const Outcome again = run("stat -c %s big; ls | wc -l");
  EXPECT_EQ(again.stdout_bytes, "8388608\n99\n");
  expect_saved(again);
}

TEST_F(WorkspaceRuns, ARunThatALimitEndedKeepsWhatItHadWritten) {
  limits().wall_seconds = std::chrono::milliseconds(2000);
  const Outcome outcome = run("echo before > file; sleep 100");
  EXPECT_EQ(outcome.status, Status::kTimeout);
  expect_saved(outcome);
  EXPECT_EQ(disk_->read("file"), "before\n");
}

TEST_F(WorkspaceRuns, ACancelledRunKeepsWhatItHadWritten) {
  const auto started = start(shell("echo before > file; echo ready; sleep 100"));
  ASSERT_TRUE(started);
  await_word(*started);
  started->cancel();
  ASSERT_TRUE(drive(*started));
  const Outcome outcome = started->take_outcome();
  EXPECT_EQ(outcome.status, Status::kCancelled);
  expect_saved(outcome);
  EXPECT_EQ(disk_->read("file"), "before\n");
}

TEST_F(WorkspaceRuns, AForgottenWorkspaceIsNotSaved) {
  disk_->write("file", "old");
  disk_->forget();
  const Outcome outcome = run("echo new > file");
  EXPECT_TRUE(outcome.ok());
  ASSERT_TRUE(outcome.workspace);
  EXPECT_FALSE(outcome.workspace->saved);
  EXPECT_EQ(outcome.workspace->reason, "it was forgotten");
  EXPECT_EQ(disk_->read("file"), "old");
}

TEST_F(WorkspaceRuns, AFailedSaveIsNeverASuccessAndLeavesTheOldFiles) {
  disk_->write("file", "old");
  disk_->fill_disk();
  const Outcome outcome = run("echo new > file; echo said");
  EXPECT_EQ(outcome.status, Status::kSandboxError);
  EXPECT_EQ(outcome.stdout_bytes, "said\n");
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, "host");
  EXPECT_THAT(outcome.error->fix, HasSubstr("make room"));
  EXPECT_EQ(outcome.error->step, "pwrite");
  EXPECT_EQ(outcome.error->sys_errno, ENOSPC);
  EXPECT_THAT(outcome.error->detail, HasSubstr("the workspace was not saved"));
  ASSERT_TRUE(outcome.workspace);
  EXPECT_FALSE(outcome.workspace->saved);
  EXPECT_THAT(outcome.workspace->reason, HasSubstr("No space left"));
  EXPECT_EQ(disk_->read("file"), "old");
}

TEST_F(WorkspaceRuns, ATreeThatCannotBeReadFailsTheRunWithTheCause) {
  ASSERT_EQ(::mkfifo(disk_->at("fifo").c_str(), 0600), 0);
  const Outcome outcome = run("echo ran");
  EXPECT_EQ(outcome.status, Status::kSandboxError);
  EXPECT_EQ(outcome.stdout_bytes, "");
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->detail, "fifo is a special file");
  ASSERT_TRUE(outcome.workspace);
  EXPECT_FALSE(outcome.workspace->saved);
  EXPECT_EQ(outcome.workspace->reason, "the program did not start");
}

// One entry of a fill stream.
std::string entry(plan::FillKind kind, const std::string& path, const std::string& behind = {},
                  std::uint32_t mount = plan::kWorkMount) {
  plan::FillHeader header;
  header.kind = kind;
  header.tmpfs = mount;
  header.mode = 0755;
  header.path_size = static_cast<std::uint32_t>(path.size());
  header.size = behind.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + path + behind;
}

// No workspace of ours holds such a thing. If one did, the filler would not follow it, not even to
// another place inside.
TEST_F(WorkspaceRuns, AStreamThatLeavesWorkFailsTheRunAndWritesNothing) {
  using plan::FillKind;
  const std::string end = entry(FillKind::kEnd, "", "", 0);
  const std::string to_output = entry(FillKind::kSymlink, "link", "/output");
  const struct {
    std::string stream;
    int error;
  } cases[] = {
      {to_output + entry(FillKind::kFile, "link/f", "x"), ELOOP},
      {to_output + entry(FillKind::kDirectory, "link/d"), ELOOP},
      {to_output + entry(FillKind::kFile, "link", "x"), EEXIST},
      {entry(FillKind::kFile, "../output/f", "x"), EXDEV},
      {entry(FillKind::kFile, "/output/f", "x"), EXDEV},
      {entry(FillKind::kDirectory, "../output/d"), EXDEV},
      {entry(FillKind::kSymlink, "../output/l", "x"), EXDEV},
      {entry(FillKind::kHardLink, "h", "../etc/passwd"), EXDEV},
      {to_output + entry(FillKind::kHardLink, "h", "link/f"), ELOOP},
      {entry(FillKind::kFile, "f", "x", 1000), EPROTO},
      {entry(FillKind::kFile, std::string(5000, 'p'), "x"), EPROTO},
      {entry(static_cast<FillKind>(77), "f", "x"), EPROTO},
      {"", EPIPE},
  };
  for (const auto& each : cases) {
    disk_->fill_with(each.stream.empty() ? "" : each.stream + end);
    const Outcome outcome = run("ls /output");
    EXPECT_EQ(outcome.status, Status::kSandboxError);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->step, "fill");
    EXPECT_EQ(outcome.error->sys_errno, each.error) << outcome.error->detail;
    EXPECT_EQ(outcome.stdout_bytes, "");
    EXPECT_TRUE(outcome.files.empty());
  }
  disk_->fill_with(to_output + entry(FillKind::kFile, "f", "x") +
                   entry(FillKind::kHardLink, "h", "f") + end);
  EXPECT_EQ(run("cat h; readlink link; ls /output").stdout_bytes, "x/output\n")
      << "the control: what is lawful arrives";
}

TEST_F(WorkspaceRuns, OfManyInodesFitTheMemoryThatIsAskedOfThem) {
  limits().work_inodes = 10'000;
  for (int i = 0; i < 5'000; ++i) disk_->write("f" + std::to_string(i), "");
  limits().memory = plan::kLeastMemory + 5'001 * 1024;
  const Outcome outcome = run("echo *4999");
  EXPECT_EQ(outcome.status, Status::kOk);
  EXPECT_EQ(outcome.stdout_bytes, "f4999\n");
  expect_saved(outcome);
}

TEST_F(WorkspaceRuns, ASpawnerThatDiesLosesTheRunAndNotTheWorkspace) {
  disk_->write("file", "old");
  const auto started = start(shell("echo new > file; echo ready; sleep 100"));
  ASSERT_TRUE(started);
  await_word(*started);
  ASSERT_EQ(::kill(sandbox_->spawner_pid(), SIGKILL), 0);
  ASSERT_TRUE(drive(*started));
  const Outcome outcome = started->take_outcome();
  EXPECT_EQ(outcome.status, Status::kSandboxError);
  ASSERT_TRUE(outcome.workspace);
  EXPECT_FALSE(outcome.workspace->saved);
  EXPECT_EQ(disk_->read("file"), "old");
}

TEST_F(WorkspaceRuns, DroppingOneInTheMiddleOfItsFillingLeavesNothing) {
  disk_->write("big", std::string(60 * kMiB, 'x'));
  for (int wait = 0; wait < 5; ++wait) {
    auto started = start(shell("true"));
    ASSERT_TRUE(started);
    turn(*started, std::chrono::milliseconds(wait * 10));
    started.reset();
  }
  const Outcome outcome = run("stat -c %s big");
  EXPECT_EQ(outcome.stdout_bytes, std::to_string(60 * kMiB) + "\n");
}

// Whoever writes the stream sees no more of it than a reader that is gone.
TEST_F(WorkspaceRuns, WhatEndsTheFillingIsTheVerdictAndNoFailureOfOurs) {
  disk_->write("big", std::string(60 * kMiB, 'x'));
  limits().cpus_milli = 10;
  limits().wall_seconds = std::chrono::milliseconds(300);
  const Outcome late = run("echo ran");
  EXPECT_EQ(late.status, Status::kTimeout);
  EXPECT_FALSE(late.error) << late.error->step << ": " << late.error->detail;
  EXPECT_EQ(late.stdout_bytes, "") << "control: it was still being filled";
  ASSERT_TRUE(late.workspace);
  EXPECT_EQ(late.workspace->reason, "the program did not start");
  limits().wall_seconds = std::chrono::seconds(60);
  const auto started = start(shell("echo ran"));
  ASSERT_TRUE(started);
  turn(*started, std::chrono::milliseconds(100));
  started->cancel();
  ASSERT_TRUE(drive(*started));
  const Outcome cancelled = started->take_outcome();
  EXPECT_EQ(cancelled.status, Status::kCancelled);
  EXPECT_FALSE(cancelled.error) << cancelled.error->step << ": " << cancelled.error->detail;
}

TEST_F(WorkspaceRuns, WhatIsNoFileIsRefusedWithItsReason) {
  const Outcome outcome = run("mkfifo pipe; echo x > file");
  expect_saved(outcome);
  ASSERT_EQ(outcome.workspace->refused.size(), 1U);
  EXPECT_EQ(outcome.workspace->refused[0].path, "pipe");
  EXPECT_EQ(outcome.workspace->refused[0].reason, "named pipe");
  EXPECT_THAT(collect::to_json(outcome),
              HasSubstr(R"("workspace":{"saved":true,"reason":null,"size":4096,"inodes":2,)"
                        R"("refused":[{"path":"pipe","reason":"named pipe"}]})"));
}

TEST_F(WorkspaceRuns, NothingInsideTellsWhereItLies) {
  disk_->write("file", "x");
  const std::string place =
      std::filesystem::path(disk_->at("")).parent_path().parent_path().filename().string();
  const Outcome outcome =
      run("cat /proc/self/mountinfo /proc/self/maps /proc/self/environ; ls -l /proc/self/fd");
  EXPECT_THAT(outcome.stdout_bytes, HasSubstr(" /work "));
  EXPECT_THAT(outcome.stdout_bytes, ::testing::Not(HasSubstr(place)));
}

TEST_F(WorkspaceRuns, OutputIsCollectedBesideIt) {
  const Outcome outcome = run("echo out > /output/result; echo kept > kept");
  ASSERT_EQ(outcome.files.size(), 1U);
  EXPECT_EQ(outcome.files[0].content, "out\n");
  expect_saved(outcome);
  EXPECT_EQ(disk_->read("kept"), "kept\n");
}

TEST(WorkspaceRunsAsAUser, HoldWithOneIdToo) {
  const UserGround user;
  if (!user.trouble().empty()) GTEST_SKIP() << user.trouble();
  const TemporaryDirectory home;
  ASSERT_EQ(::chown(home.path().c_str(), kTestUser, kTestUser), 0);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string copy = home.path() + "/test";
  std::filesystem::copy_file(self, copy);
  const Finished finished =
      run_process({copy, "--gtest_filter=WorkspaceRuns.*"}, user_options(home));
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
}

}  // namespace
}  // namespace sbx::test
