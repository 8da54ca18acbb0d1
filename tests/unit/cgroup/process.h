// Real processes for the tests of the cgroup drivers.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/cgroup/driver.h"

namespace sbx::cgroup::test {

// A forked child; SIGKILLed and reaped by the destructor. `body` must not return to the caller's
// code: the child exits with 0 after it, or with what it passed to _exit.
class Process {
 public:
  // In the caller's own groups.
  static Process start(const std::function<void()>& body);
  // In the payload groups of `run`: cloned into the leaf (v2) or joined before `body` (v1).
  // Returns once it is there.
  static Process start_in(const CgroupRun& run, const std::function<void()>& body);

  Process(Process&&) = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // errno when the clone was refused, else 0.
  [[nodiscard]] int start_error() const { return start_error_; }
  void kill() const;
  // The wait status; nullopt when it lives longer than `patience`.
  std::optional<int> wait(std::chrono::milliseconds patience);

 private:
  Process(pid_t pid, int error);

  pid_t pid_ = -1;
  int start_error_ = 0;
  UniqueFd pidfd_;
};

// clone3(2) into the cgroup v2 group `leaf`; -1 with errno when refused, 0 in the child.
pid_t clone_into(int leaf);

// Touches `bytes` of fresh memory.
void touch_memory(std::size_t bytes);
// Burns CPU until it is killed.
[[noreturn]] void spin();
// Waits until it is killed.
[[noreturn]] void sleep_forever();
// Forks sleeping children until the kernel refuses; returns how many there are.
int fork_until_refused(int ceiling);
// The same, and kills them again.
int count_forks_until_refused(int ceiling);

// Polls the descriptors of `run` until oom_happened() or `patience` is over.
bool wait_for_oom(CgroupRun& run, std::chrono::milliseconds patience);

}  // namespace sbx::cgroup::test
