// Setting up, and killing: runs whose pid 1 is killed at moments that nobody chose, ten thousand of
// them; and pids that come back as somebody else's.
//
// A run's id map is written by the payload itself and its processes are signalled through pidfds
// alone, so that a recycled pid can be hit by neither. The second half runs in a pid namespace of
// its own, where the next pid can be chosen.
#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>

#include "runtime/base/sys.h"
#include "runtime/cli/probe_program.h"
#include "tests/adversarial/arena.h"
#include "tests/support/process.h"

namespace sbx::test {
namespace {

using Clock = std::chrono::steady_clock;
using collect::Outcome;
using collect::Status;
using ::testing::HasSubstr;

// Everything that the process has as a child now.
std::vector<pid_t> children_of(pid_t parent) {
  const std::string self = std::to_string(parent);
  std::ifstream file("/proc/" + self + "/task/" + self + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

bool is_child(pid_t pid, pid_t parent) {
  const auto children = children_of(parent);
  return std::find(children.begin(), children.end(), pid) != children.end();
}

// SIGKILLs a child of the spawner; never anybody who got its pid meanwhile.
bool kill_child(pid_t pid, pid_t spawner) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return pidfd && is_child(pid, spawner) && sys::pidfd_signal(pidfd.get(), SIGKILL).has_value();
}

class KilledAtRandom : public AdversarialTest {
 protected:
  void SetUp() override {
    AdversarialTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto bytes = cli::probe_program();
    const std::string program = arena().rootfs() + "/etc/probe";
    std::ofstream(program, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    std::filesystem::permissions(program, std::filesystem::perms(0755));
  }
  // Without anything to fill: the runs are short, and most of each is setting up.
  static plan::Request nothing() {
    plan::Request request;
    request.argv = {"/etc/probe", "nothing"};
    return request;
  }
  std::unique_ptr<RunInFlight> start() {
    RunHooks hooks;
    hooks.collect = collect::CollectMode::kNone;
    auto run = arena().sandbox().start(nothing(), 0, std::move(hooks));
    EXPECT_TRUE(run) << to_string(run.error());
    return run ? *std::move(run) : nullptr;
  }
  [[nodiscard]] pid_t spawner() { return arena().sandbox().spawner_pid(); }
};

// How a killed run may end: as what it was, and nothing else.
std::string kind_of(const Outcome& outcome) {
  if (outcome.ok()) return "over before it was killed";
  if (outcome.status == Status::kSecurity) return "killed after exec, by whom is not known";
  if (outcome.status != Status::kSandboxError || !outcome.error) return "?";
  const std::string& detail = outcome.error->detail;
  if (outcome.error->step == "clone(CLONE_NEWNET)" && outcome.error->sys_errno == EINTR) {
    return "killed while the net namespace was made";
  }
  if (detail == "init was killed by signal 9") return "killed after exec";
  if (detail == "it ended during set-up without a report, wait status 9")
    return "killed before exec";
  return "? " + outcome.error->step + ": " + detail;
}

// Polls all runs together, for at most `patience`, and steps those that have something.
void turn_all(std::deque<std::unique_ptr<RunInFlight>>& runs, std::chrono::nanoseconds patience) {
  std::vector<pollfd> all;
  std::vector<std::size_t> ends;
  for (const auto& run : runs) {
    const auto& wanted = run->interest();
    all.insert(all.end(), wanted.begin(), wanted.end());
    ends.push_back(all.size());
  }
  const timespec wait{0, patience.count()};
  (void)::ppoll(all.data(), all.size(), &wait, nullptr);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < runs.size(); begin = ends[i++]) {
    runs[i]->step({all.begin() + static_cast<std::ptrdiff_t>(begin),
                   all.begin() + static_cast<std::ptrdiff_t>(ends[i])});
  }
}

TEST_F(KilledAtRandom, TenThousandLeaveNothingAndSayWhy) {
  constexpr int kRuns = 10'000;
  constexpr std::size_t kAtOnce = 6;
  std::mt19937 random(20250607);
  std::deque<std::unique_ptr<RunInFlight>> runs;
  std::map<std::string, int> kinds;
  auto last_end = Clock::now();
  for (int killed = 0; killed < kRuns || !runs.empty();) {
    ASSERT_LT(Clock::now() - last_end, std::chrono::seconds(60)) << "runs hang, killed " << killed;
    while (killed < kRuns && runs.size() < kAtOnce) {
      runs.push_back(start());
      ASSERT_NE(runs.back(), nullptr);
    }
    turn_all(runs, std::chrono::microseconds(random() % 300));
    const std::vector<pid_t> children = children_of(spawner());
    if (!children.empty() && random() % 3 != 0) {
      (void)kill_child(children[random() % children.size()], spawner());
    }
    std::erase_if(runs, [&](const std::unique_ptr<RunInFlight>& run) {
      if (!run->done()) return false;
      last_end = Clock::now();
      const Outcome outcome = run->take_outcome();
      killed += outcome.ok() ? 0 : 1;
      ++kinds[kind_of(outcome)];
      return true;
    });
  }
  for (const auto& [kind, count] : kinds) {
    EXPECT_NE(kind[0], '?') << kind << " " << count;
    std::cout << count << " " << kind << "\n";
  }
  EXPECT_GT(kinds["killed before exec"], kRuns / 10);
  // TearDown looks for what is left.
}

// A process with the pid that another one had, in a user namespace without a map.
class Successor {
 public:
  explicit Successor(pid_t wanted) {
    std::ofstream("/proc/sys/kernel/ns_last_pid") << wanted - 1;
    auto ready = sys::pipe();
    pid_ = ::fork();
    if (pid_ == 0) {
      const char done = ::unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
      (void)!::write(ready->second.get(), &done, 1);
      for (;;) (void)::pause();
    }
    char byte = 'n';
    is_ready_ = ::read(ready->first.get(), &byte, 1) == 1 && byte == 'y';
  }
  Successor(const Successor&) = delete;
  Successor& operator=(const Successor&) = delete;
  ~Successor() {
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] bool is(pid_t wanted) const { return is_ready_ && pid_ == wanted; }
  [[nodiscard]] bool lives() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  [[nodiscard]] std::string id_map() const {
    return read_text("/proc/" + std::to_string(pid_) + "/uid_map");
  }

 private:
  pid_t pid_ = -1;
  bool is_ready_ = false;
};

void wait_until_gone(pid_t pid) {
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  while (::kill(pid, 0) == 0 && Clock::now() < deadline) (void)::sched_yield();
}

// Control: by its number a process can be given a map, and be killed.
void expect_reached_by_number(const Successor& successor, pid_t pid) {
  EXPECT_TRUE(sys::write_file("/proc/" + std::to_string(pid) + "/uid_map", "0 0 1")) << "control";
  EXPECT_NE(successor.id_map(), "") << "control";
  (void)::kill(pid, SIGKILL);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid) << "control";
}

// Only a pid namespace of its own lets a test choose pids: outside one it runs itself there, as
// pid 1.
TEST_F(KilledAtRandom, ARecycledPidIsNeitherMappedNorSignalled) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to choose pids in a namespace of its own";
  if (::getpid() != 1) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const Finished inside =
        run_process({"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount-proc", self,
                     "--gtest_filter=KilledAtRandom.ARecycledPidIsNeitherMappedNorSignalled"});
    EXPECT_EQ(inside.exit_code, 0) << inside.out << inside.err;
    EXPECT_THAT(inside.out, HasSubstr("[  PASSED  ] 1 test"));
    return;
  }
  constexpr int kRuns = 300;
  std::mt19937 random(20250608);
  int recycled = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto run = start();
    ASSERT_NE(run, nullptr);
    const auto moment = Clock::now() + std::chrono::microseconds(random() % 4000);
    while (!run->done() && (children_of(spawner()).empty() || Clock::now() < moment)) {
      turn(*run, std::chrono::milliseconds(0));
    }
    const std::vector<pid_t> children = children_of(spawner());
    if (children.empty()) continue;  // it was over already
    const pid_t pid = children.front();
    (void)kill_child(pid, spawner());
    wait_until_gone(pid);
    const Successor successor(pid);
    // What the supervisor does next has the pid's old owner in mind.
    if (i % 2 == 0) run->cancel();
    ASSERT_TRUE(drive(*run));
    EXPECT_TRUE(successor.lives()) << i;
    EXPECT_EQ(successor.id_map(), "") << i;
    if (!successor.is(pid)) continue;
    if (++recycled == kRuns / 2) expect_reached_by_number(successor, pid);
  }
  EXPECT_GE(recycled, kRuns / 2);
}

}  // namespace
}  // namespace sbx::test
