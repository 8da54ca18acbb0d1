// Runs the program sbx-scope, which gets the calling process a group that systemd has delegated.
// Blocking (tens of milliseconds; at most the program's own time limit).
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace sbx::cgroup {

// True when systemd is pid 1 of this host (sd_booted(3)).
[[nodiscard]] bool systemd_is_running();

enum class ScopeWish {
  kAny,  // the unit the caller is in, if it is delegated, else a new scope
  kNew,  // always a new scope
};

// `program` is the path of sbx-scope, or empty: then beside this program, or in ../libexec/sbx.
// Returns the group's path as in /proc/self/cgroup; the caller is in it. kHost with what sbx-scope
// said when there is no manager to ask or it refused.
[[nodiscard]] Result<std::string> get_scope(const std::string& program, ScopeWish wish);

}  // namespace sbx::cgroup
