// What sbx-init lets go on of the calls that take file locks. Stage: child.
//
// The kernel bounds nowhere how many locks a run holds, and looks through all those of an inode
// whenever anybody on the host closes it. So init bounds the locks held, not the calls. It counts
// the calls that go on, each with as many locks as it can leave, and when those might be too many
// reads in /proc/locks how many there are. The kernel shows there the locks of the processes of
// init's pid namespace, which are the run's own, as long as those who took them live:
// * record locks end with the last process of a descriptor table; only threads share one, since
//   clone(2) makes no process that does (policy/seccomp/arguments.toml), and those of open file
//   descriptions (F_OFD_SETLK) are refused: none is hidden;
// * a flock may outlive its taker in a descriptor that another process has. The first process lives
//   as long as the run, so its flocks are shown; those of all others are counted for good.
//
// What was let go on and waits inside its call is not held yet: two locks a thread beyond the
// bound.
#pragma once

#include <linux/seccomp.h>

#include "runtime/child/context.h"

namespace sbx::child {

enum class LockCall {
  kNone,
  kRecord,          // fcntl: leaves two more at most, where it splits one
  kFlock,           // of the run's first process
  kFlockElsewhere,  // of any other
};

// What a notified call is, whose action the plan has.
[[nodiscard]] LockCall lock_call(const Context& context, std::uint16_t action,
                                 const seccomp_notif& call);

// Whether the call may go on; may read /proc/locks. False when that cannot be read.
[[nodiscard]] bool has_room(const Context& context, LockCall call);

// The call goes on.
void count_lock(LockCall call);

}  // namespace sbx::child
