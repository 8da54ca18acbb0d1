// How groups are named after records, and the sweep over what dead records left; both drivers use
// it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/cgroup/driver.h"

namespace sbx::cgroup {

// A record is one name component of letters, digits, '_', '-' and '.', not starting with '.', at
// most kMaxRecord bytes, and not one of the names below. kInvalid otherwise.
inline constexpr std::size_t kMaxRecord = 128;
[[nodiscard]] Result<void> check_record(std::string_view record);

// The leaf of a record's spawner (v2).
inline constexpr std::string_view kSpawnerSuffix = ".spawner";
// The leaf of a supervisor that stood in the base itself (v2).
inline constexpr std::string_view kSupervisorLeaf = "supervisor";

// The leaves of a run (v2).
inline constexpr const char* kInitLeaf = "init";
inline constexpr const char* kPayloadLeaf = "payload";

// The record that a subgroup of the base belongs to; "" for the supervisor's leaf.
[[nodiscard]] std::string_view record_of(std::string_view group_name);

}  // namespace sbx::cgroup
