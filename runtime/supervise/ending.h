// Ending: the facts of how a run ended, before any judgement. Stage: supervise. A value.
//
// Everything here is evidence from the kernel, from sbx-init's report records, or from our own
// deadlines; nothing is what the program said about itself. collect/verdict.* turns it into a
// status.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cgroup/driver.h"
#include "runtime/policy/layers.h"

namespace sbx::supervise {

// A call seen by user notification; `count` is an upper bound (signals make calls notify again).
struct SeenCall {
  std::uint32_t arch = 0;
  std::uint32_t nr = 0;
  std::uint64_t count = 0;
};

// Free space of one sized tmpfs as init read it at the payload's end.
struct StorageState {
  std::string limit;  // "tmp", "output", "work", "shm"
  std::uint64_t free_bytes = 0;
  std::uint64_t free_inodes = 0;
};

// An optional layer, or a required one that the caller allowed to be missing, that did not come up.
struct LayerFailure {
  policy::Layer layer{};
  std::string step;
  int sys_errno = 0;
};

// One captured stream: the first bytes and the last, with the middle counted.
struct Captured {
  std::string head;
  std::string tail;  // empty unless bytes were dropped or head is full
  std::uint64_t dropped = 0;
  std::uint64_t total = 0;
};

struct Ending {
  // Ours: a set-up step, a lost spawner. Not init dying after exec by a signal: the verdict judges
  // that from init_wait_status, since where payload and init share a uid it may be an attack.
  std::optional<Error> failure;
  // "About to exec" was reported: set-up is over. Stays so where the exec failed:
  // payload_wait_status is then 126 or 127.
  bool exec_reached = false;
  std::optional<int> payload_wait_status;  // as waitpid gives it
  std::optional<int> init_wait_status;
  std::optional<SeenCall> hostile;    // set: ended by a hostile call
  std::vector<SeenCall> denied;       // first 64 (arch, nr)
  std::uint64_t denied_unlisted = 0;  // calls of numbers that are not in it
  // Init told its totals before it ended. It cannot when it is killed: then they are lower bounds.
  bool denied_counts_are_final = false;

  bool cancelled = false;
  bool wall_expired = false;
  bool cpu_expired = false;      // it used too much, and was killed for it unless it ended first
  bool output_exceeded = false;  // the same of what it wrote; only with output_kills

  std::optional<std::uint64_t> lock_limit;  // on file locks held, where more were refused
  bool background_killed = false;           // processes were left when the payload ended
  std::uint64_t packets_without_route = 0;  // Ip OutNoRoutes of the run's net namespace
  std::vector<StorageState> storage;        // empty after a kill by the supervisor
  std::vector<LayerFailure> layer_failures;

  Captured out;
  Captured err;
  std::optional<cgroup::Usage> usage;  // none without a cgroup

  std::chrono::nanoseconds setup{};  // launch to "about to exec"
  // Launch to the payload's end by init's clock; where init was killed, to the last process gone.
  std::chrono::nanoseconds total{};
};

}  // namespace sbx::supervise
