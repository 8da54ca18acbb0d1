// crun refuses hosts on which cgroup v1 and v2 both hold controllers. On such a one, root measures
// in a mount namespace without the v2 part; every competitor sees the same.
#pragma once

#include "runtime/base/result.h"

namespace sbx::bench {

// Call before any competitor runs. True when something was hidden; false also where nothing needs
// to be and where we are not root (crun is skipped then).
[[nodiscard]] Result<bool> hide_hybrid_cgroup2();

}  // namespace sbx::bench
