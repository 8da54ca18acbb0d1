// The driver for cgroup v2: `<base>/<record>/` with the cpu limit, and its leaves `init` and
// `payload`, the latter with memory (no swap, group kill) and pids. Linux 5.14 (cgroup.kill).
//
// Init lives beside the payload, not with it, so that an OOM kill takes the whole payload and init
// is left to report it; and so that `pids` counts the payload alone.
#pragma once

#include <memory>

#include "runtime/base/result.h"
#include "runtime/cgroup/driver.h"
#include "runtime/cgroup/v2_base.h"

namespace sbx::cgroup {

// SECURITY: when `options.owner_uid` is not the caller, the base's cgroup.procs is given to it as
// well: a clone into a run's leaf needs write access to the cgroup.procs of the common ancestor.
// Limits and the base directory stay the caller's. With `hand_over` all of the base is given away.
[[nodiscard]] Result<std::unique_ptr<Driver>> make_v2_driver(V2Base base,
                                                             const DriverOptions& options);

// Kills what is in `<parent>/<name>`, waits until it is empty and removes it with all below it.
// Blocking until `deadline`; a missing group is success.
[[nodiscard]] Result<void> kill_and_remove_v2(const GroupDir& parent, const std::string& name,
                                              Deadline deadline);

}  // namespace sbx::cgroup
