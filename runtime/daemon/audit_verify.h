// sbxd audit verify: checks an audit file and says what was found. Stage: daemon, edge.
#pragma once

#include "runtime/daemon/arguments.h"

namespace sbx::daemon {

// Prints to stdout. 0: intact; 1: not, or it cannot be read.
[[nodiscard]] int audit_verify(const Arguments& arguments);

}  // namespace sbx::daemon
