// Acts that change a process, done in a forked child so that they change only that. Stage: edge
// (doctor, selftest). Call from a single-threaded process; blocking; the child is always reaped.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/cli/host.h"

namespace sbx::cli {

// Runs `act` in a child; what it returns comes back. The child is killed after 10 seconds.
[[nodiscard]] Act in_child(const std::function<Act()>& act);

// A child that has done `act` and then waits, so that its parent can work on it from outside.
class WaitingChild {
 public:
  explicit WaitingChild(const std::function<Act()>& act);
  WaitingChild(const WaitingChild&) = delete;
  WaitingChild& operator=(const WaitingChild&) = delete;
  ~WaitingChild();  // ends and reaps it
  [[nodiscard]] const Act& act() const { return act_; }
  [[nodiscard]] pid_t pid() const { return pid_; }  // ours and unreaped: it names no one else

 private:
  pid_t pid_ = -1;
  UniqueFd hold_;
  Act act_;
};

// Steps that an act is made of: errno of the moment, as a failed step.
[[nodiscard]] Act failed(const char* step);

// In the child: a new user namespace in which the caller's ids are `inside` (one id each).
[[nodiscard]] Act enter_user_namespace(unsigned inside);
// In the child: root in a new user namespace, and nobody on the host: where the caller is root, an
// id that belongs to nobody.
[[nodiscard]] Act enter_user_namespace_as_nobody();
// In the child: writes one file of /proc/self.
[[nodiscard]] bool write_proc(const char* path, const std::string& text);

// Runs a program with its output thrown away; its exit code, 128+n for a signal, a negative errno
// when it could not be started.
[[nodiscard]] int run_quietly(const std::vector<std::string>& argv);

}  // namespace sbx::cli
