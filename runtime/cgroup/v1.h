// The driver for cgroup v1 and hybrid hosts: memory, pids, cpu and cpuacct, wherever each is
// mounted (cpu and cpuacct often together). One group per run and hierarchy, holding the payload
// only.
//
// v1 has neither group kill nor CLONE_INTO_CGROUP: the payload joins through ready descriptors, and
// the supervisor kills pid 1 inside at the OOM event.
#pragma once

#include <memory>

#include "runtime/base/result.h"
#include "runtime/cgroup/driver.h"
#include "runtime/cgroup/hierarchy.h"

namespace sbx::cgroup {

// Root gets `<mount>/<parent>` (made when missing), an ordinary user `<mount>/<parent>-<uid>`,
// which must be there and his; with `hand_over` root makes it and gives it to him. kHost with the
// fix when a controller or the subtree is missing.
[[nodiscard]] Result<std::unique_ptr<Driver>> make_v1_driver(const Hierarchies& hierarchies,
                                                             const DriverOptions& options);

}  // namespace sbx::cgroup
