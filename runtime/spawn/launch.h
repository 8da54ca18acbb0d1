// Cloning sbx-init. Stage: spawn; runs in the spawner process.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/plan/flat_plan.h"

namespace sbx::spawn {

// Descriptors by slot; -1 is "closed".
struct InitDescriptors {
  int slots[plan::kSlotCount];
};

struct Cloned {
  pid_t pid = -1;
  UniqueFd pidfd;
};

// clone3 with memory shared and the spawner stopped until the exec of `init`; new pid, mount, ipc,
// uts namespaces but those in `without`; into the cgroup `init_leaf` unless that is -1. An exec
// that fails shows as init's exit code 127.
[[nodiscard]] Result<Cloned> clone_init(int init, const InitDescriptors& descriptors, int init_leaf,
                                        std::uint64_t without);

}  // namespace sbx::spawn
