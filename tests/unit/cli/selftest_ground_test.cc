// What an interrupted selftest leaves in /tmp and among the System V queues, and who may take it
// away.
#include "runtime/cli/selftest_ground.h"

#include <gtest/gtest.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "runtime/base/sys.h"

namespace sbx::cli {
namespace {

namespace fs = std::filesystem;

struct Ground {
  std::string directory;
  key_t key = 0;

  [[nodiscard]] bool has_directory() const { return fs::exists(directory); }
  [[nodiscard]] bool has_queue() const { return ::msgget(key, 0) >= 0; }
};

Ground of(const ControlGround& ground) {
  return {ground.directory(), std::atoi(ground.resolve("@queue").c_str())};
}

// Of a process that SIGKILL ended meanwhile.
Ground left_ground() {
  auto pipe = sys::pipe();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const Result<ControlGround> ground = ControlGround::prepare();
    if (ground) {
      (void)sys::write_all(pipe->second.get(),
                           ground->directory() + " " + ground->resolve("@queue"));
    }
    (void)::raise(SIGKILL);
  }
  pipe->second.reset();
  const std::string said = *sys::read_all(pipe->first.get(), 4096);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  const std::size_t space = said.find(' ');
  EXPECT_NE(space, std::string::npos);
  return {said.substr(0, space), std::atoi(said.c_str() + space + 1)};
}

class SelftestGround : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::msgget(IPC_PRIVATE - 1, 0) < 0 && errno == ENOSYS) GTEST_SKIP() << "no System V queues";
  }
};

TEST_F(SelftestGround, IsGoneWithItsOwner) {
  Ground seen;
  {
    const Result<ControlGround> ground = ControlGround::prepare();
    ASSERT_TRUE(ground) << to_string(ground.error());
    seen = of(*ground);
    EXPECT_TRUE(seen.has_directory());
    EXPECT_TRUE(seen.has_queue());
    msqid_ds status{};
    ASSERT_EQ(::msgctl(::msgget(seen.key, 0), IPC_STAT, &status), 0);
    EXPECT_EQ(status.msg_perm.mode & 0777, 0400) << "nobody reads it or writes to it";
  }
  EXPECT_FALSE(seen.has_directory());
  EXPECT_FALSE(seen.has_queue());
}

std::set<std::string> names_in_tmp() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator("/tmp")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("sbx-selftest-")) names.insert(name);
  }
  return names;
}

TEST_F(SelftestGround, ThatCannotBeLockedIsRemovedAndTheReasonTold) {
  (void)ControlGround::prepare();  // what others left is no concern of this
  const std::set<std::string> before = names_in_tmp();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit none{0, 0};
    (void)::setrlimit(RLIMIT_NOFILE, &none);
    const Result<ControlGround> ground = ControlGround::prepare();
    ::_exit(ground ? 0 : ground.error().sys_errno);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), EMFILE);
  EXPECT_EQ(names_in_tmp(), before);
}

TEST_F(SelftestGround, ThatASigkillLeftIsRemovedByTheNextOne) {
  const Ground left = left_ground();
  EXPECT_TRUE(left.has_directory()) << "control";
  EXPECT_TRUE(left.has_queue()) << "control";
  const Result<ControlGround> next = ControlGround::prepare();
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_FALSE(left.has_directory());
  EXPECT_FALSE(left.has_queue());
}

TEST_F(SelftestGround, OfALivingOneStays) {
  const Result<ControlGround> first = ControlGround::prepare();
  const Result<ControlGround> second = ControlGround::prepare();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(of(*first).has_directory());
  EXPECT_TRUE(of(*first).has_queue());
  EXPECT_TRUE(fs::exists(first->directory() + "/canary"));
}

TEST_F(SelftestGround, ThatHoldsAnythingElseStays) {
  const Ground left = left_ground();
  const std::string canary = left.directory + "/canary";
  const auto stays = [&](const char* about) {
    (void)ControlGround::prepare();
    EXPECT_TRUE(fs::exists(canary) && left.has_queue()) << about;
  };
  std::ofstream(left.directory + "/mine") << "x";
  stays("another file");
  fs::remove(left.directory + "/mine");
  std::ofstream(canary) << "x";
  stays("a file that is written to");
  fs::remove(canary);
  fs::create_symlink("/dev/null", canary);
  stays("a link");
  fs::remove(canary);
  (void)ControlGround::prepare();
  EXPECT_FALSE(left.has_directory());
  EXPECT_FALSE(left.has_queue());
}

// Anybody can make one in /tmp.
TEST_F(SelftestGround, ALinkWithItsNameIsNotFollowed) {
  char target[] = "/tmp/sbx-unit-XXXXXX";
  ASSERT_NE(::mkdtemp(target), nullptr);
  const std::string canary = std::string(target) + "/canary";
  std::ofstream(canary).flush();
  const std::string link = "/tmp/sbx-selftest-" + std::string(target).substr(14);
  fs::create_directory_symlink(target, link);
  (void)ControlGround::prepare();
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(fs::exists(canary));
  fs::remove(link);
  fs::remove_all(target);
}

TEST_F(SelftestGround, OfAnotherUserStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "takes root, to be two users";
  const Ground left = left_ground();
  ASSERT_EQ(::chown(left.directory.c_str(), 60451, 60451), 0);
  (void)ControlGround::prepare();
  EXPECT_TRUE(left.has_directory());
  ASSERT_EQ(::chown(left.directory.c_str(), 0, 0), 0);
  (void)ControlGround::prepare();
  EXPECT_FALSE(left.has_directory());
}

}  // namespace
}  // namespace sbx::cli
