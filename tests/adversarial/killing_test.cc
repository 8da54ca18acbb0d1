// Killing and waiting: programs that do not want to end, do, on time and with the right words, and
// nothing of them is left.
//
// Lines of the class that are shown elsewhere: a hog of several processes in memory_test.cc; pid
// reuse in killed_at_random_test.cc; the supervisor killed at any moment there and in
// tests/integration/soak_test.cc; clock steps and a frozen group on cgroup v2 in tests/vm
// (sbx-run-clock-steps, sbx-run-frozen).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "runtime/base/sys.h"
#include "tests/adversarial/inside.h"

namespace sbx::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Killing : public InsideTest {
 protected:
  // A control's program, outside, as this caller.
  [[nodiscard]] std::vector<std::string> copy_of(const std::string& name,
                                                 const std::vector<std::string>& arguments = {}) {
    std::string path = directory().write(name, read_text(program_path(name)));
    EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
    std::vector<std::string> words{std::move(path)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }
};
SBX_AS_BOTH_CALLERS(Killing);

std::vector<pid_t> children_of(pid_t parent) {
  const std::string self = std::to_string(parent);
  std::ifstream file("/proc/" + self + "/task/" + self + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

// While it lives, processes that lose their parent become this process's children; kills and reaps
// them at the end.
class OrphanKeeper {
 public:
  OrphanKeeper() { (void)::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  OrphanKeeper(const OrphanKeeper&) = delete;
  OrphanKeeper& operator=(const OrphanKeeper&) = delete;
  ~OrphanKeeper() {
    (void)end_all();
    (void)::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  // Waits until that many children but `known` live; how many did when the time was up.
  static std::size_t wait_for(std::size_t count, pid_t known) {
    const auto deadline = Clock::now() + seconds(20);
    for (;;) {
      std::size_t orphans = 0;
      for (const pid_t child : children_of(::getpid())) {
        orphans += child != known && ::waitpid(child, nullptr, WNOHANG) == 0 ? 1 : 0;
      }
      if (orphans == count || Clock::now() >= deadline) return orphans;
      (void)::sched_yield();
    }
  }
  // Ours, unreaped: their pids name nobody else. Until there are none: one that dies may have left
  // another that becomes ours only then.
  static void end_all() {
    for (;;) {
      for (const pid_t child : children_of(::getpid())) (void)::kill(child, SIGKILL);
      const pid_t ended = ::waitpid(-1, nullptr, __WALL | WNOHANG);
      if (ended < 0) return;  // ECHILD
      if (ended == 0) (void)::sched_yield();
    }
  }
};

TEST_P(Killing, DeafDaemonsDieWhenTheMainProgramEnds) {
  const json result = attack({"-t", "20"}, "daemons");
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_EQ(result["stdout"], "left\n");
  EXPECT_LT(result["duration_seconds"].get<double>(), 10.0);
  EXPECT_THAT(note_codes(result), Contains("background_killed"));

  const OrphanKeeper keeper;
  Process control(copy_of("daemons"), options());
  ASSERT_TRUE(control.wait_for_output("left\n", seconds(20)));
  EXPECT_EQ(OrphanKeeper::wait_for(8, control.pid()), 8U) << "control: outside they live on";
  OrphanKeeper::end_all();
}

TEST_P(Killing, AGrandchildThatKeepsThePipesOpenHoldsNothingUp) {
  const json result = attack({"-t", "20"}, "parked", {"pipe"});
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_EQ(result["stdout"], "up\n");
  EXPECT_LT(result["duration_seconds"].get<double>(), 10.0);

  const OrphanKeeper keeper;
  Process control(copy_of("parked", {"pipe"}), options());
  ASSERT_TRUE(control.wait_for_output("up\n", seconds(20)));
  EXPECT_EQ(OrphanKeeper::wait_for(1, control.pid()), 1U);
  EXPECT_FALSE(control.wait_for_output("the end", seconds(1)));
  OrphanKeeper::end_all();
  EXPECT_FALSE(control.wait_for_output("the end", seconds(20)));
  EXPECT_LT(control.finish(seconds(20)).seconds, 20) << "control: only now did the pipe end";
}

// The groups of a run of ours in which pids are counted, whichever cgroup version.
std::vector<fs::path> groups_with_pids(const std::string& pids) {
  std::vector<fs::path> found;
  for (const char* const top : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
    for (const std::string& subtree : {std::string("sbx"), "sbx-" + std::to_string(kTestUser)}) {
      std::error_code none;
      for (fs::recursive_directory_iterator at(fs::path(top) / subtree, none), end; at != end;
           at.increment(none)) {
        if (read_text(at->path() / "pids.current") == pids + "\n") found.push_back(at->path());
      }
    }
  }
  return found;
}

template <typename Condition>
bool holds_within(std::chrono::milliseconds patience, Condition condition) {
  const auto deadline = Clock::now() + patience;
  while (!condition()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // cgroup v1 has no event for it
  }
  return true;
}

// On a busy host a second may pass before anybody gets a CPU: one of three must be in time.
TEST_P(Killing, AForkBombAtTheCapIsGoneWithinASecond) {
  bool in_time = false;
  for (int attempt = 0; attempt < 3 && !in_time; ++attempt) {
    Process run(command(inside({"-t", "60"}, "fork_bomb")), options());
    std::vector<fs::path> groups;
    ASSERT_TRUE(holds_within(seconds(20), [&] {
      groups = groups_with_pids("64");
      return !groups.empty();
    }));
    run.signal(SIGTERM);
    const auto is_gone = [&] { return read_text(groups.front() / "cgroup.procs").empty(); };
    in_time = holds_within(seconds(1), is_gone);
    EXPECT_TRUE(in_time || holds_within(seconds(20), is_gone)) << groups.front();
    EXPECT_EQ(run.finish().exit_code, 130);
  }
  EXPECT_TRUE(in_time);

  ThrowAwayLimits limits;
  limits.patience = seconds(1);
  EXPECT_TRUE(thrown_away("fork_bomb", {}, limits).timed_out) << "control: it does not end";
}

TEST_P(Killing, AForkBombEndsOnTime) {
  const json result = attack({"-t", "1"}, "fork_bomb");
  EXPECT_EQ(result["status"], "timeout") << result.dump();
  EXPECT_LT(result["duration_seconds"].get<double>(), 8.0);
  EXPECT_EQ(result["usage"]["pids_peak"], 64);
  EXPECT_THAT(note_codes(result), Contains("pids"));
}

// What is killed need not wait for the CPU time that its limit holds back: without that, this one
// took 5 to 9 seconds to die.
TEST_P(Killing, AThrottledForkBombEndsOnTime) {
  const json result = attack({"-t", "3", "--cpus", "0.01"}, "fork_bomb");
  EXPECT_EQ(result["status"], "timeout") << result.dump();
  EXPECT_GT(result["usage"]["throttled_seconds"].get<double>(), 0.1) << "it was throttled";
  EXPECT_LT(result["duration_seconds"].get<double>(), 6.0);
}

TEST_P(Killing, ProgramsThatStopThemselvesOrWaitInTheKernelEndOnTime) {
  const std::string profile =
      directory().write("traces.toml", profile_text("", "allow = [\"ptrace\"]\n"));
  const std::vector<std::vector<std::string>> attacks = {
      inside({"-t", "1"}, "unkillable"),
      inside({"-t", "1"}, "parked", {"vfork"}),
      inside({"-t", "1", "--profile", profile}, "parked", {"ptrace"}),
      inside({"-t", "1"}, "parked", {"wait"}),
  };
  std::vector<std::unique_ptr<Process>> running;
  for (std::vector<std::string> words : attacks) {
    words.insert(words.begin(), "--json");
    running.push_back(std::make_unique<Process>(command(std::move(words)), options()));
  }
  for (const auto& run : running) {
    const json result = json::parse(run->finish().out, nullptr, false);
    ASSERT_TRUE(result.is_object());
    EXPECT_EQ(result["status"], "timeout") << result.dump();
    EXPECT_EQ(result["stdout"], "up\n");
    EXPECT_LT(result["duration_seconds"].get<double>(), 10.0);
  }
  ThrowAwayLimits limits;
  limits.patience = seconds(1);
  EXPECT_TRUE(thrown_away("parked", {"vfork"}, limits).timed_out) << "control";
  EXPECT_TRUE(thrown_away("parked", {"ptrace"}, limits).timed_out) << "control";
}

TEST_P(Killing, TracingIsHostileUnlessAProfileAllowsIt) {
  const json result = attack({"-t", "20"}, "parked", {"ptrace"});
  EXPECT_EQ(result["status"], "security") << result.dump();
  EXPECT_EQ(result["denials"][0]["syscall"], "ptrace");
}

TEST_P(Killing, TenThousandZombiesOfPidOneAreReaped) {
  for (const char* const kind : {"double", "sibling", "silent"}) {
    const json result = attack({"-t", "60", "--cpus", "2"}, "orphans", {kind, "10000", "20"});
    EXPECT_EQ(result["stdout"], "10000\n") << kind << result.dump();
    EXPECT_EQ(result["status"], "ok");
  }
  // The control is its own pid 1, which does not reap: the cap is reached and nothing goes on.
  const std::string made = thrown_away("orphans", {"double", "10000", "1"}).out;
  EXPECT_LT(std::stoi(made), 64) << "control";
}

TEST_P(Killing, NothingLivesOnWhenTheRunnerIsKilled) {
  Process process(command(inside({"-t", "60"}, "unkillable")), options());
  ASSERT_TRUE(process.wait_for_output("up\n", seconds(20)));
  process.signal(SIGKILL);
  EXPECT_EQ(process.finish().signal, SIGKILL);
  // What a dead runner cannot remove itself is removed by the next.
  EXPECT_EQ(run({"--", "/bin/true"}).exit_code, 0);

  const OrphanKeeper keeper;
  std::vector<std::string> shell{"/bin/sh", "-c", "\"$0\" wait & wait"};
  shell.push_back(copy_of("parked").front());
  Process control(shell, options());
  ASSERT_TRUE(control.wait_for_output("up\n", seconds(20)));
  control.signal(SIGKILL);
  EXPECT_EQ(OrphanKeeper::wait_for(1, control.pid()), 1U) << "control: a shell's child lives on";
  OrphanKeeper::end_all();
}

// SIGKILLs the first child: sbx-run's spawner.
bool kill_spawner(const Process& run) {
  std::vector<pid_t> children;
  if (!holds_within(seconds(20), [&] { return !(children = children_of(run.pid())).empty(); })) {
    return false;
  }
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, children.front(), 0)));
  return pidfd && sys::pidfd_signal(pidfd.get(), SIGKILL).has_value();
}

TEST_P(Killing, ARunWhoseSpawnerIsKilledEndsAsAnErrorOfOurs) {
  const std::vector<std::string> words = command(inside({"-t", "60"}, "unkillable"));
  for (const int moment : {0, 1, 2, 3, 5, 8, 13, 21}) {  // milliseconds, before the program is up
    Process run(words, options());
    ASSERT_TRUE(holds_within(seconds(20), [&] { return !children_of(run.pid()).empty(); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(moment));  // any moment will do
    ASSERT_TRUE(kill_spawner(run));
    const Finished finished = run.finish(seconds(20));
    EXPECT_EQ(finished.exit_code, 125) << moment << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("spawner")) << moment;
  }
  Process run(words, options());
  ASSERT_TRUE(run.wait_for_output("up\n", seconds(20)));
  ASSERT_TRUE(kill_spawner(run));
  const Finished finished = run.finish(seconds(20));
  EXPECT_EQ(finished.exit_code, 125) << finished.err;
  EXPECT_EQ(finished.out, "up\n");
  // TearDown looks for what is left.
}

// As one caller: nothing depends on it, and a kill that does not help is waited for.
class Freezing : public Killing {};
INSTANTIATE_TEST_SUITE_P(Callers, Freezing, ::testing::Values(Caller::kSelf), caller_name);

// From inside nobody can freeze; somebody with power over cgroups can. On cgroup v1 a frozen
// process takes no signal, so all that is left is to say so, and to leave nothing once it is
// thawed.
TEST_P(Freezing, AFrozenProgramIsAnErrorOfOursAndGoesWhenItIsThawed) {
  const fs::path freezer = "/sys/fs/cgroup/freezer";
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to freeze";
  if (!fs::exists(freezer / "cgroup.procs")) {
    GTEST_SKIP() << "cgroup v1 freezer alone; v2's is tried in tests/vm (sbx-run-frozen)";
  }
  const fs::path group = freezer / ("sbx-test-" + std::to_string(::getpid()));
  ASSERT_TRUE(fs::create_directory(group));
  Process run(command(inside({"-t", "1"}, "parked", {"wait"})), options());
  ASSERT_TRUE(run.wait_for_output("up\n", seconds(20)));
  std::vector<pid_t> payload{run.pid()};
  for (int generation = 0; generation < 3 && !payload.empty(); ++generation) {
    payload = children_of(payload.front());
  }
  ASSERT_FALSE(payload.empty());
  ASSERT_TRUE(sys::write_file(group / "cgroup.procs", std::to_string(payload.front())));
  ASSERT_TRUE(sys::write_file(group / "freezer.state", "FROZEN"));
  const Finished finished = run.finish();
  EXPECT_EQ(finished.exit_code, 125) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("did not end after SIGKILL"));
  EXPECT_FALSE(read_text(group / "cgroup.procs").empty()) << "control: it was frozen";
  ASSERT_TRUE(sys::write_file(group / "freezer.state", "THAWED"));
  EXPECT_TRUE(holds_within(seconds(5), [&] { return ::rmdir(group.c_str()) == 0; }));
  EXPECT_EQ(run_json({"--", "/bin/true"})["status"], "ok");
}

// What a process could have had changed from outside, as text.
std::string state_of(pid_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid) + "/";
  std::string state = read_text(directory + "limits");
  for (const char* const name : {"oom_score_adj", "coredump_filter"}) {
    state += read_text(directory + name);
  }
  // By how much differs from run to run, with the second in which each began.
  std::ifstream offsets(directory + "timens_offsets");
  std::string clock;
  double offset = 0;
  offsets >> clock >> offset;
  state += offset == 0 ? "the host's clock " : "a clock of its own ";
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  (void)::sched_getaffinity(pid, sizeof cpus, &cpus);
  constexpr int kWhoProcess = 1;
  state += "cpus " + std::to_string(CPU_COUNT(&cpus)) + " class " +
           std::to_string(::sched_getscheduler(pid)) + " nice " +
           std::to_string(::getpriority(PRIO_PROCESS, static_cast<id_t>(pid))) + " io " +
           std::to_string(::syscall(SYS_ioprio_get, kWhoProcess, pid));
  return state;
}

// The state of pid 1 of a run whose program has printed `said` and stays.
std::string state_of_init(Process& run, const std::string& said) {
  if (!run.wait_for_output(said, seconds(20))) return "it did not say " + said;
  const auto spawners = children_of(run.pid());
  const auto inits = spawners.empty() ? spawners : children_of(spawners.front());
  return inits.empty() ? "there is no init" : state_of(inits.front());
}

TEST_P(Killing, AProgramThatAttacksInitChangesNothingAndEndsByItsOwnVerdict) {
  const json result = attack({"-t", "20"}, "attack_init");
  EXPECT_EQ(result["status"], "exit") << result.dump();
  EXPECT_EQ(result["exit_code"], 7);
  EXPECT_THAT(
      result["stdout"].get<std::string>(),
      AllOf(HasSubstr("done\n"), Not(HasSubstr("took /proc")), Not(HasSubstr("took prlimit")),
            Not(HasSubstr("took s")), Not(HasSubstr("took ioprio"))));
  if (::geteuid() == 0) {  // it takes root to look at init
    Process attacked(command(inside({"-t", "60"}, "attack_init", {"1", "stay"})), options());
    Process left_alone(command(inside({"-t", "60"}, "parked", {"wait"})), options());
    const std::string state = state_of_init(attacked, "done\n");
    EXPECT_EQ(state, state_of_init(left_alone, "up\n"));
    EXPECT_THAT(state, HasSubstr("Max cpu time"));
    for (Process* const run : {&attacked, &left_alone}) {
      run->signal(SIGTERM);
      EXPECT_EQ(run->finish().exit_code, 130);
    }
  }
  Process victim(copy_of("parked", {"wait"}), options());
  ASSERT_TRUE(victim.wait_for_output("up\n", seconds(20)));
  const std::string before = state_of(victim.pid());
  Process attacker(copy_of("attack_init", {std::to_string(victim.pid())}), options());
  EXPECT_THAT(attacker.finish().out,
              AllOf(HasSubstr("/oom_score_adj"), HasSubstr("took prlimit"),
                    HasSubstr("took sched_setaffinity"), HasSubstr("took sched_setscheduler"),
                    HasSubstr("took setpriority"), HasSubstr("took ioprio_set"), HasSubstr("/mem")))
      << "control: a process of its own user is open to all of it";
  EXPECT_NE(victim.finish().signal, 0) << "control";
}

}  // namespace
}  // namespace sbx::test
