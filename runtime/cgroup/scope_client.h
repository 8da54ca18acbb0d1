// Runs the program sbx-scope, which asks systemd for a delegated scope around the calling process.
// Blocking (tens of milliseconds; at most the program's own time limit).
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace sbx::cgroup {

// True when systemd is pid 1 of this host (sd_booted(3)).
[[nodiscard]] bool systemd_is_running();

// `program` is the path of sbx-scope, or empty: then beside this program, or in ../libexec/sbx.
// Returns the new group's path as in /proc/self/cgroup; the caller has been moved into it. kHost
// with what sbx-scope said when there is no manager to ask or it refused.
[[nodiscard]] Result<std::string> start_scope(const std::string& program);

}  // namespace sbx::cgroup
