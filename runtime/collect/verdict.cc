#include "runtime/collect/verdict.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>

#include <string_view>

namespace sbx::collect {
namespace {

using supervise::Ending;

Verdict sandbox_error(std::string step, std::string detail) {
  ErrorInfo error;
  error.code = "internal";
  error.step = std::move(step);
  error.detail = std::move(detail);
  return {.error = std::move(error)};
}

bool has_oom_kill(const Ending& ending) {
  return ending.usage && ending.usage->oom_kills >= 1;
}

// Did we have a reason to kill? Cgroup v1 has no group kill, so an oom event is one too.
bool killed_by_us(const Ending& ending) {
  return ending.cancelled || ending.wall_expired || ending.cpu_expired || ending.output_exceeded ||
         ending.hostile.has_value() || has_oom_kill(ending);
}

// Init died of a signal that we did not send. We only ever send SIGKILL, and once the payload's end
// is reported init has nothing left to be killed for.
bool init_killed_by_stranger(const Ending& ending) {
  if (!ending.exec_reached || ending.payload_wait_status || !ending.init_wait_status) return false;
  const int status = *ending.init_wait_status;
  return WIFSIGNALED(status) && (WTERMSIG(status) != SIGKILL || !killed_by_us(ending));
}

std::string describe_init(const Ending& ending) {
  if (!ending.init_wait_status) return "init's end is unknown";
  const int status = *ending.init_wait_status;
  if (WIFSIGNALED(status)) return fmt::format("init was killed by signal {}", WTERMSIG(status));
  return fmt::format("init exited with {}", WEXITSTATUS(status));
}

// Of an ending, wait(2) uses this many; the macros look at no others, and would take 0x10000 for an
// exit with 0.
constexpr int kWaitStatusBits = 0xffff;

Verdict unknown_status(int status) {
  return sandbox_error("init", fmt::format("unknown wait status {:#x}", status));
}

// The kernel ends a process that is over RLIMIT_CPU by SIGKILL, and tells nobody why: that the run
// has used as much is what shows, and without a cgroup nothing does. (A program that does both by
// itself deceives nobody but itself.)
bool ended_by_caller_cpu(const Ending& ending, const VerdictFacts& facts, int signal) {
  if (!facts.caller_cpu_seconds || (signal != SIGKILL && signal != SIGXCPU)) return false;
  constexpr std::uint64_t kTicks = 50'000;  // the two clocks differ by less
  return ending.usage && ending.usage->cpu_usec + kTicks >= *facts.caller_cpu_seconds * 1'000'000;
}

// Nothing of ours ended the run: the payload's own wait status speaks, if there is one.
Verdict judge_payload(const Ending& ending, const VerdictFacts& facts) {
  if (!ending.exec_reached) {
    return sandbox_error("set-up",
                         "the run ended before the program started: " + describe_init(ending));
  }
  if (!ending.payload_wait_status) {
    return sandbox_error("init", "the program's end was not reported: " + describe_init(ending));
  }
  const int status = *ending.payload_wait_status;
  if ((status & ~kWaitStatusBits) != 0) return unknown_status(status);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (ended_by_caller_cpu(ending, facts, signal)) return {.status = Status::kCpuTime};
    return {.status = Status::kSignal, .exit_code = 128 + signal, .signal = signal};
  }
  if (!WIFEXITED(status)) return unknown_status(status);
  const int code = WEXITSTATUS(status);
  return {.status = code == 0 ? Status::kOk : Status::kExit, .exit_code = code};
}

}  // namespace

Verdict judge(const Ending& ending, const VerdictFacts& facts) {
  if (ending.failure) return {.error = error_info(*ending.failure)};
  const bool init_killed = init_killed_by_stranger(ending);
  if (init_killed && facts.uid_separation_held) return sandbox_error("init", describe_init(ending));
  if (ending.cancelled) return {.status = Status::kCancelled};
  if (ending.hostile || init_killed) return {.status = Status::kSecurity};
  if (has_oom_kill(ending)) {
    return {.status = Status::kOom, .exit_code = 128 + SIGKILL, .signal = SIGKILL};
  }
  if (ending.wall_expired) return {.status = Status::kTimeout};
  if (ending.cpu_expired) return {.status = Status::kCpuTime};
  if (ending.output_exceeded) return {.status = Status::kOutput};
  return judge_payload(ending, facts);
}

std::vector<std::string> limits_reached(const Ending& ending, Status status) {
  std::vector<std::string> reached;
  const auto add_if = [&reached](bool holds, std::string name) {
    if (holds) reached.push_back(std::move(name));
  };
  add_if(status == Status::kTimeout, "wall_seconds");
  // Not at a limit of the caller's, which a note names: the run's own may be higher, or none.
  add_if(status == Status::kCpuTime && ending.cpu_expired, "cpu_seconds");
  add_if(has_oom_kill(ending), "memory");
  add_if(ending.usage && ending.usage->pids_refused > 0, "pids");
  for (const supervise::StorageState& storage : ending.storage) {
    add_if(storage.free_bytes == 0, storage.limit);
    add_if(storage.free_inodes == 0, storage.limit + "_inodes");
  }
  add_if(ending.out.dropped > 0, "stdout_bytes");
  add_if(ending.err.dropped > 0, "stderr_bytes");
  return reached;
}

ErrorInfo error_info(const Error& error) {
  ErrorInfo info;
  switch (error.code) {
    case ErrorCode::kInvalid:
      info.code = "invalid_request";
      break;
    case ErrorCode::kHost:
      info.code = "host";
      break;
    case ErrorCode::kInternal:
      info.code = "internal";
      break;
  }
  info.step = error.operation.empty() ? error.stage : error.operation;
  info.sys_errno = error.sys_errno;
  info.detail = error.detail;
  info.fix = error.fix;
  return info;
}

}  // namespace sbx::collect
