// One run's groups under cgroup v1.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cgroup/driver.h"
#include "runtime/cgroup/group_dir.h"

namespace sbx::cgroup {

// Our subtree in each distinct hierarchy, and which of them serves which controller.
struct V1Subtrees {
  std::vector<GroupDir> dirs;
  std::size_t memory = 0;
  std::size_t pids = 0;
  std::size_t cpu = 0;
  std::size_t cpuacct = 0;
};

// `subtrees` is the driver's and must outlive the run. On failure nothing is left.
[[nodiscard]] Result<std::unique_ptr<CgroupRun>> make_v1_run(const V1Subtrees& subtrees,
                                                             const std::string& record,
                                                             const RunLimits& limits);

}  // namespace sbx::cgroup
