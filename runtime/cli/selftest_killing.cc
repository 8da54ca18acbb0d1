// Attacks on the end of a run, and on how many may take part. A table, with the columns of
// selftest_memory.cc.
#include <cerrno>
#include <csignal>

#include "runtime/cli/selftest_run_tables.h"

namespace sbx::cli {
namespace {

using collect::Status;

constexpr std::string_view kPids = "pid_namespace";  // it dies as a whole
constexpr double kPromptSeconds = 8;  // far from any of the times that the programs would take

bool is_gone(const RunSeen& seen) {
  return seen.alive_after == 0 && seen.outcome && seen.outcome->duration_seconds < kPromptSeconds;
}
bool is_ended_on_time(const RunSeen& seen) {
  return ended_as(seen, Status::kTimeout) && is_gone(seen);
}
bool is_cancelled(const RunSeen& seen) {
  return ended_as(seen, Status::kCancelled) && is_gone(seen);
}
bool is_done_and_gone(const RunSeen& seen) {
  return ended_as(seen, Status::kOk) && is_gone(seen);
}
bool is_killed(const RunSeen& seen) {
  return ended_as(seen, Status::kSignal) && seen.outcome->signal == SIGKILL && !hit(seen, "memory");
}
bool is_killed_and_gone(const RunSeen& seen) {
  return is_killed(seen) && is_gone(seen);
}
bool is_capped(const RunSeen& seen) {
  return hit(seen, "pids") && seen.outcome->usage && seen.outcome->usage->pids_peak <= 16;
}
// By its time, or by what the kernel charges for the forks that it refuses.
bool is_capped_and_gone(const RunSeen& seen) {
  return is_capped(seen) && is_gone(seen) &&
         (ended_as(seen, Status::kTimeout) || ended_as(seen, Status::kOom));
}
bool was_many(const RunSeen& seen) {
  return seen.outcome && seen.outcome->usage && seen.outcome->usage->pids_peak > 16;
}
bool is_out_of_cpu_time(const RunSeen& seen) {
  return ended_as(seen, Status::kCpuTime);
}
bool has_no_room(const RunSeen& seen) {
  return answer_of(seen) == EAGAIN;
}

// Longer than the limit on wall time, and as long under one that is longer.
constexpr RunCase outlives(std::string_view name, std::string_view act) {
  return {kKilling,         name,   kPids, act,    "2500", "wall_seconds=1",
          is_ended_on_time, "2500", "",    did_all};
}

// The bomb has room: what the kernel keeps of refused forks for a moment counts as its memory.
constexpr RunCase kKillingCases[] = {
    outlives("ignore every signal", "linger"),
    outlives("stop the whole group", "stop"),
    outlives("wait in vfork", "park"),
    {kKilling, "ignore a cancel", kPids, "linger", "2500", "", is_cancelled, "2500", "", did_all,
     "", "", true},
    {kKilling, "daemons that keep the pipes open", kPids, "daemons", "", "", is_done_and_gone,
     "daemons", "", nullptr, "left_behind", "they live on"},
    {kKilling, "children of one that was killed", kPids, "die", "with children", "",
     is_killed_and_gone, "die with children", "", nullptr, "left_behind", "they live on"},
    {kKilling, "its own SIGKILL is told as such", kNone, "die", "", "", is_killed, "not", "",
     did_all},
    {kKilling, "orphans that fill the cap", kCgroup, "orphans", "200", "pids=16", did_all,
     "200 stay", "pids=16", has_no_room},
    {kKilling, "processes over the cap", kCgroup, "crowd", "24", "pids=16", is_capped, "24",
     "pids=64", was_many},
    {kKilling, "fork bomb", kCgroup, "fork_bomb", "", "pids=16 memory=256M wall_seconds=3",
     is_capped_and_gone, "", "pids=64 memory=256M wall_seconds=3", was_many},
    {kKilling, "CPU time of a process", kCgroup, "burn", "600", "cpu_seconds=0.2",
     is_out_of_cpu_time, "600", "cpu_seconds=10", did_all},
    {kKilling, "CPU time of several processes", kCgroup, "burn", "150 4", "cpu_seconds=0.2",
     is_out_of_cpu_time, "150 4", "cpu_seconds=10", did_all},
};

}  // namespace

std::span<const RunCase> killing_cases() {
  return kKillingCases;
}

}  // namespace sbx::cli
