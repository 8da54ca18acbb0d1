// Killing what is inside a group where the kernel has no cgroup.kill (v1).
#pragma once

#include "runtime/base/result.h"
#include "runtime/cgroup/group_dir.h"

namespace sbx::cgroup {

// SIGKILLs every process in `group` until none is left or `deadline` is reached (then EBUSY).
//
// SECURITY: cgroup.procs gives bare pids, which may be recycled between reading and killing. Each
// is killed through a pidfd, and only if cgroup.procs still lists the pid after the pidfd was
// opened; so a stranger that got the number in between is never hit.
[[nodiscard]] Result<void> kill_members(const GroupDir& group, Deadline deadline);

}  // namespace sbx::cgroup
