// One interface over cgroup v2 and v1/hybrid. Runs in the supervisor, never inside.
//
// Ownership: a CgroupRun owns the groups of one run and removes them in its destructor (kill, wait
// empty, rmdir). What cannot be removed at once is left to sweep(), which knows them by name.
// Everything is named after the run's record, so that a later process can clean up for a dead one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace sbx::cgroup {

struct RunLimits {
  std::uint64_t memory = 0;  // bytes, swap 0
  std::uint32_t cpus_milli = 0;
  std::uint32_t pids = 0;
};

struct Usage {
  std::uint64_t cpu_usec = 0;
  std::uint64_t memory_peak = 0;  // bytes
  std::uint64_t pids_peak = 0;    // 0 where the kernel does not tell (before 6.1's pids.peak)
  std::uint64_t oom_kills = 0;    // evidence is >= 1, not the exact number
  std::uint64_t throttled_usec = 0;
  std::uint64_t pids_refused = 0;  // forks refused by the limit
};

// A descriptor the supervisor polls to learn of an out-of-memory kill without delay.
struct EventFd {
  int fd = -1;       // borrowed from the CgroupRun
  short events = 0;  // POLLIN (v1 eventfd) or POLLPRI (v2 memory.events)
};

class CgroupRun {
 public:
  virtual ~CgroupRun() = default;

  // v2: O_DIRECTORY fds for CLONE_INTO_CGROUP, else -1. Borrowed.
  [[nodiscard]] virtual int init_leaf_fd() const = 0;
  [[nodiscard]] virtual int payload_leaf_fd() const = 0;
  // v1: ready fds of the groups' `tasks` files (cgroupfs magic checked) into which the payload
  // writes "0" while it has one thread, at most kMaxJoinFds, all opened by the driver's own
  // credentials. v2: empty. Borrowed.
  [[nodiscard]] virtual const std::vector<int>& join_fds() const = 0;
  // v1: how many of join_fds, from the first, init joins itself, so that its CPU time counts in the
  // run too; the payload inherits those. The others (memory, pids) hold the payload alone.
  [[nodiscard]] virtual std::size_t init_join_count() const { return 0; }

  // All of them are to be polled (v1 has a second one, a timer, which fires when a kill was
  // announced but not yet counted). They stay valid until the CgroupRun is destroyed.
  [[nodiscard]] virtual std::vector<EventFd> event_fds() const = 0;
  // Consumes a wake-up of any event fd; true when an oom kill has happened. Never blocks.
  [[nodiscard]] virtual bool oom_happened() = 0;

  [[nodiscard]] virtual Result<std::uint64_t> cpu_usec() const = 0;
  // Read after everything inside is dead, before remove().
  [[nodiscard]] virtual Result<Usage> usage() const = 0;
  // v2: cgroup.kill on the payload. v1: an error; the supervisor then kills pid 1 inside.
  [[nodiscard]] virtual Result<void> kill() = 0;
  // Takes the CPU limit off, at once also for what is throttled now. For what has been killed: a
  // throttled process takes its SIGKILL only when its group has quota again.
  [[nodiscard]] virtual Result<void> lift_cpu_limit() = 0;
  // Waits until empty and removes the groups; blocking up to `patience`, then an error with EBUSY.
  // v2 kills what is still inside. Idempotent, and fine when a sweep was faster.
  [[nodiscard]] virtual Result<void> remove(std::chrono::milliseconds patience) = 0;
};

inline constexpr std::size_t kMaxJoinFds = 8;

struct DriverOptions {
  std::string parent = "sbx";  // subtree name
  uid_t owner_uid = 0;  // the outer root id that must own groups (root: uid_base; user: himself)
  gid_t owner_gid = 0;
  // Root, for a service that becomes `owner_uid`: the subtree becomes his, and the caller is moved
  // to where he may clone into it.
  bool hand_over = false;
  // Where sbx-scope is; empty: beside this program, or in ../libexec/sbx (v2 under systemd only).
  std::string scope_program;
};

class Driver {
 public:
  virtual ~Driver() = default;
  // "v2" or "v1", and for `layers`: driver, controllers, swap control.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string detail() const = 0;
  // True when swap is limited or the host has none; else the layer is degraded.
  [[nodiscard]] virtual bool swap_controlled() const = 0;
  // False for v1, which needs nothing of the spawner.
  [[nodiscard]] virtual bool has_spawner_leaf() const = 0;
  // Puts process `pid` (the spawner) where CLONE_INTO_CGROUP into our groups is allowed: a leaf
  // named `record` + ".spawner". v1: nothing to do.
  [[nodiscard]] virtual Result<void> adopt_spawner(pid_t pid, std::string_view record) = 0;
  // Makes the groups of one run with its limits set; a limit of 0 is none. `record` is a safe
  // single name component (records.h; kInvalid otherwise); EEXIST when its groups are still there.
  // The CgroupRun must not outlive the Driver.
  [[nodiscard]] virtual Result<std::unique_ptr<CgroupRun>> create(std::string_view record,
                                                                  const RunLimits& limits) = 0;
  // Removes every group (killing what is inside) whose record name `is_dead` says is dead. The base
  // may be shared with groups of others: is_dead must say no to a name of which it knows nothing.
  // Returns how many records' groups were removed; what is still busy is counted as not removed.
  using IsDead = bool (*)(std::string_view record, void* context);
  [[nodiscard]] virtual Result<int> sweep(IsDead is_dead, void* context) = 0;
  // Removes the spawner's leaf after its death.
  virtual void release_spawner(std::string_view record) = 0;
};

// Chooses from what this host has and the caller may write. kHost with the fix when nothing works.
[[nodiscard]] Result<std::unique_ptr<Driver>> choose_driver(const DriverOptions& options);

}  // namespace sbx::cgroup
