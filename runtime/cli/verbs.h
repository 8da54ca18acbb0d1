// The verbs of sbx-run. Each is an edge: it prints, and returns the process's exit code. Stage:
// edge.
#pragma once

#include "runtime/cli/arguments.h"

namespace sbx::cli {

inline constexpr int kExitUsage = 2;
inline constexpr int kExitSandboxError = 125;
inline constexpr int kExitCancelled = 130;

[[nodiscard]] int run(const Arguments& arguments);
[[nodiscard]] int doctor(const Arguments& arguments);
[[nodiscard]] int selftest(const Arguments& arguments);
[[nodiscard]] int explain(const Arguments& arguments);
[[nodiscard]] int print_config();

}  // namespace sbx::cli
