// One run's groups under cgroup v2.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/cgroup/driver.h"
#include "runtime/cgroup/group_dir.h"

namespace sbx::cgroup {

struct V2Owner {
  uid_t uid = 0;
  gid_t gid = 0;
  bool differs = false;  // from the caller: the groups are delegated to it
};

// `base` is the driver's and must outlive the run. On failure nothing is left.
[[nodiscard]] Result<std::unique_ptr<CgroupRun>> make_v2_run(const GroupDir& base,
                                                             const std::string& record,
                                                             const RunLimits& limits,
                                                             const V2Owner& owner);

// cgroup.kill, then waits on cgroup.events until nothing is left (EBUSY at `deadline`).
[[nodiscard]] Result<void> kill_and_wait_v2(const GroupDir& group, Deadline deadline);

}  // namespace sbx::cgroup
