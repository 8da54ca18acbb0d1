// The verdict: one table a person can read, then every combination against the order of precedence.
#include "runtime/collect/verdict.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <array>

namespace sbx::collect {
namespace {

using supervise::Ending;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int exited(int code) {
  return code << 8;
}
constexpr int killed(int signal) {
  return signal;
}

Ending ended(int payload_status) {
  Ending ending;
  ending.exec_reached = true;
  ending.payload_wait_status = payload_status;
  ending.init_wait_status = exited(0);
  return ending;
}

// Killed by us: init's record of the payload's end never came.
Ending stopped() {
  Ending ending;
  ending.exec_reached = true;
  ending.init_wait_status = killed(SIGKILL);
  return ending;
}

cgroup::Usage oom_usage(std::uint64_t kills) {
  cgroup::Usage usage;
  usage.oom_kills = kills;
  return usage;
}

void expect(const Ending& ending, Status status, int exit_code, std::optional<int> signal,
            bool separated = true) {
  const Verdict verdict = judge(ending, {.uid_separation_held = separated});
  EXPECT_EQ(status_name(verdict.status), status_name(status));
  EXPECT_EQ(verdict.exit_code, exit_code);
  EXPECT_EQ(verdict.signal, signal);
  EXPECT_EQ(verdict.error.has_value(), status == Status::kSandboxError);
}

TEST(Verdict, AnEndingWithoutEvidenceIsASandboxError) {
  expect(Ending{}, Status::kSandboxError, -1, {});
}

TEST(Verdict, AKillAtTheCallersCpuLimitIsCpuTime) {
  Ending ending = ended(killed(SIGKILL));
  ending.usage.emplace().cpu_usec = 1'960'000;
  const auto status = [&ending](std::optional<std::uint64_t> seconds) {
    return judge(ending, {.caller_cpu_seconds = seconds}).status;
  };
  EXPECT_EQ(status({}), Status::kSignal);
  EXPECT_EQ(status(3), Status::kSignal) << "it had not used as much";
  EXPECT_EQ(status(2), Status::kCpuTime);
  EXPECT_THAT(limits_reached(ending, status(2)), IsEmpty()) << "cpu_seconds was not met";
  ending.payload_wait_status = killed(SIGSEGV);
  EXPECT_EQ(status(2), Status::kSignal);
  ending.payload_wait_status = killed(SIGKILL);
  ending.usage.reset();
  EXPECT_EQ(status(2), Status::kSignal) << "nothing shows what it had used";
}

TEST(Verdict, AWaitStatusThatTheKernelDoesNotGiveIsNoSuccess) {
  for (const int status : {0x10000, 0x1'0000 | exited(1), 0x137f, 0xffff, ~0xffff}) {
    expect(ended(status), Status::kSandboxError, -1, {});
  }
}

TEST(Verdict, ExitZeroIsOkAndAnyOtherCodeIsTheProgramsOwn) {
  expect(ended(exited(0)), Status::kOk, 0, {});
  expect(ended(exited(1)), Status::kExit, 1, {});
  expect(ended(exited(137)), Status::kExit, 137, {});
  expect(ended(exited(255)), Status::kExit, 255, {});
}

TEST(Verdict, ASignalOfTheProgramsOwnIsNotOurs) {
  expect(ended(killed(SIGSEGV)), Status::kSignal, 139, SIGSEGV);
  expect(ended(killed(SIGSEGV | 0x80)), Status::kSignal, 139, SIGSEGV);
  expect(ended(killed(SIGKILL)), Status::kSignal, 137, SIGKILL);
  expect(ended(killed(SIGSYS)), Status::kSignal, 159, SIGSYS);
}

TEST(Verdict, AnOomKillIsSaidByTheCounterWhateverTheMainProgramReturned) {
  for (const int status : {exited(0), exited(1), killed(SIGKILL)}) {
    Ending ending = ended(status);
    ending.usage = oom_usage(6);
    expect(ending, Status::kOom, 137, 9);
  }
  Ending none = ended(exited(0));
  none.usage = oom_usage(0);
  expect(none, Status::kOk, 0, {});
}

TEST(Verdict, OurDeadlinesAndTheClientsWishAreNoExitCodes) {
  Ending wall = stopped();
  wall.wall_expired = true;
  expect(wall, Status::kTimeout, -1, {});
  Ending cpu = stopped();
  cpu.cpu_expired = true;
  expect(cpu, Status::kCpuTime, -1, {});
  Ending output = stopped();
  output.output_exceeded = true;
  expect(output, Status::kOutput, -1, {});
  Ending cancelled = stopped();
  cancelled.cancelled = true;
  expect(cancelled, Status::kCancelled, -1, {});
}

TEST(Verdict, AHostileCallEndsInSecurity) {
  Ending ending = stopped();
  ending.init_wait_status = exited(0);
  ending.hostile = supervise::SeenCall{0, 272, 1};
  expect(ending, Status::kSecurity, -1, {});
}

TEST(Verdict, ADeadlineDuringSetUpIsStillADeadline) {
  Ending ending;
  ending.wall_expired = true;
  ending.init_wait_status = killed(SIGKILL);
  expect(ending, Status::kTimeout, -1, {});
}

TEST(Verdict, DeathDuringSetUpIsASandboxErrorEvenWithStatusZero) {
  Ending ending = ended(exited(0));
  ending.exec_reached = false;
  expect(ending, Status::kSandboxError, -1, {});
}

TEST(Verdict, InitDyingByAStrangersSignalDependsOnTheSeparationOfUids) {
  expect(stopped(), Status::kSandboxError, -1, {}, true);
  expect(stopped(), Status::kSecurity, -1, {}, false);
  Ending early = stopped();
  early.exec_reached = false;
  expect(early, Status::kSandboxError, -1, {}, false);
}

TEST(Verdict, ASignalOtherThanKillIsNeverOurs) {
  Ending ending = stopped();
  ending.wall_expired = true;
  ending.init_wait_status = killed(SIGXCPU);
  expect(ending, Status::kSecurity, -1, {}, false);
  expect(ending, Status::kSandboxError, -1, {}, true);
}

TEST(Verdict, InitExitingWithoutTheReportIsASandboxError) {
  Ending ending = stopped();
  ending.init_wait_status = exited(0);
  expect(ending, Status::kSandboxError, -1, {}, false);
}

TEST(Verdict, AFailureOfOursCarriesItsStepErrnoAndFix) {
  Ending ending = ended(exited(0));
  Error error = host_lacks("mount proc", EPERM, "no visible proc", "unmount it");
  error.stage = "child";
  ending.failure = error;
  const Verdict verdict = judge(ending, {});
  ASSERT_TRUE(verdict.error);
  EXPECT_EQ(verdict.error->code, "host");
  EXPECT_EQ(verdict.error->step, "mount proc");
  EXPECT_EQ(verdict.error->sys_errno, EPERM);
  EXPECT_EQ(verdict.error->detail, "no visible proc");
  EXPECT_EQ(verdict.error->fix, "unmount it");
}

// One combination of evidence, and what the contract's order of precedence makes of it.
struct Combination {
  unsigned bits = 0;
  std::optional<int> payload, init;

  [[nodiscard]] bool has(unsigned bit) const { return (bits >> bit & 1U) != 0; }
  [[nodiscard]] Ending ending() const {
    Ending ending;
    if (has(0)) ending.failure = invalid("x");
    ending.cancelled = has(1);
    if (has(2)) ending.hostile = supervise::SeenCall{};
    if (has(3)) ending.usage = oom_usage(1);
    ending.wall_expired = has(4);
    ending.cpu_expired = has(5);
    ending.output_exceeded = has(6);
    ending.exec_reached = has(7);
    ending.payload_wait_status = payload;
    ending.init_wait_status = init;
    return ending;
  }
  [[nodiscard]] bool separated() const { return has(8); }
  [[nodiscard]] bool stranger_killed_init() const {
    if (!has(7) || payload || !init || *init == exited(0) || *init == exited(1)) return false;
    return *init == killed(SIGXCPU) || (bits & 0x7EU) == 0;
  }
  [[nodiscard]] Status expected() const {
    const bool stranger = stranger_killed_init();
    if (has(0) || (stranger && separated())) return Status::kSandboxError;
    if (has(1)) return Status::kCancelled;
    if (has(2) || stranger) return Status::kSecurity;
    if (has(3)) return Status::kOom;
    if (has(4)) return Status::kTimeout;
    if (has(5)) return Status::kCpuTime;
    if (has(6)) return Status::kOutput;
    if (!has(7) || !payload) return Status::kSandboxError;
    if (*payload == exited(0)) return Status::kOk;
    return *payload == exited(3) ? Status::kExit : Status::kSignal;
  }
};

TEST(Verdict, FollowsThePrecedenceForEveryCombinationOfEvidence) {
  const std::array<std::optional<int>, 4> payloads{std::nullopt, exited(0), exited(3),
                                                   killed(SIGSEGV)};
  const std::array<std::optional<int>, 5> inits{std::nullopt, exited(0), exited(1), killed(SIGKILL),
                                                killed(SIGXCPU)};
  int successes = 0;
  for (unsigned bits = 0; bits < 512; ++bits) {
    for (const auto& payload : payloads) {
      for (const auto& init : inits) {
        const Combination combination{bits, payload, init};
        const Verdict verdict =
            judge(combination.ending(), {.uid_separation_held = combination.separated()});
        ASSERT_EQ(status_name(verdict.status), status_name(combination.expected()))
            << "bits " << bits << " payload " << payload.value_or(-1) << " init "
            << init.value_or(-1);
        successes += verdict.status == Status::kOk ? 1 : 0;
      }
    }
  }
  // Exec reached and status 0, nothing else: five ways for init to end, separated or not.
  EXPECT_EQ(successes, 10);
}

TEST(LimitsReached, NamesExactlyWhatTheEvidenceShows) {
  EXPECT_THAT(limits_reached(Ending{}, Status::kOk), IsEmpty());
  Ending ending;
  ending.wall_expired = ending.cpu_expired = true;
  ending.usage = oom_usage(1);
  ending.usage->pids_refused = 1;
  ending.storage = {{"tmp", 0, 5}, {"work", 5, 0}, {"shm", 1, 1}};
  ending.out.dropped = ending.err.dropped = 1;
  EXPECT_THAT(limits_reached(ending, Status::kOom),
              ElementsAre("memory", "pids", "tmp", "work_inodes", "stdout_bytes", "stderr_bytes"))
      << "a deadline counts only when it ended the run";
  EXPECT_EQ(limits_reached(ending, Status::kTimeout).front(), "wall_seconds");
  EXPECT_EQ(limits_reached(ending, Status::kCpuTime).front(), "cpu_seconds");
}

}  // namespace
}  // namespace sbx::collect
