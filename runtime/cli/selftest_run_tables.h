// What the tables of attacks on whole runs are written with. Stage: edge (sbx-run); internal to the
// tables.
#pragma once

#include <algorithm>

#include "runtime/cli/selftest_run_cases.h"

namespace sbx::cli {

inline constexpr AttackClass kFilesOut = AttackClass::kFilesOut;
inline constexpr AttackClass kKilling = AttackClass::kKilling;
inline constexpr AttackClass kMemory = AttackClass::kMemory;

// Held by no layer: by the mounts' own sizes, the supervisor, the collector.
inline constexpr std::string_view kNone = "-";
inline constexpr std::string_view kCgroup = "cgroup";

inline bool ended_as(const RunSeen& seen, collect::Status status) {
  return seen.outcome && seen.outcome->status == status;
}
inline bool hit(const RunSeen& seen, std::string_view limit) {
  if (!seen.outcome) return false;
  const auto& limits = seen.outcome->limits_hit;
  return std::find(limits.begin(), limits.end(), limit) != limits.end();
}
// The errno that the program ended with, 0 when it did all that it was to do; -1 when it came to no
// answer. Its last line, behind "up".
[[nodiscard]] int answer_of(const RunSeen& seen);
inline bool did_all(const RunSeen& seen) {
  return answer_of(seen) == 0;
}

// One table each (selftest_files_out.cc, …).
[[nodiscard]] std::span<const RunCase> files_out_cases();
[[nodiscard]] std::span<const RunCase> killing_cases();
[[nodiscard]] std::span<const RunCase> memory_cases();

}  // namespace sbx::cli
