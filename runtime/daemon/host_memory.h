// How much memory there is for runs: the host's, or what this unit's cgroup leaves of it. Stage:
// daemon, start-up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/daemon/config.h"

namespace sbx::daemon {

// The lowest of the host's memory and the limits of the cgroups above this process. Call it before
// the cgroup driver moves the process.
[[nodiscard]] std::uint64_t usable_memory();

[[nodiscard]] std::uint64_t budget_bytes(const MemoryBudget& budget, std::uint64_t usable);

// The group of a v1 hierarchy in the text of /proc/self/cgroup, "" when it is not there.
[[nodiscard]] std::string parse_v1_group(std::string_view text, std::string_view controller);

}  // namespace sbx::daemon
