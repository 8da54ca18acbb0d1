// Who holds a reservation: a process, told apart from a later one with the same pid.
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace agentd::ledger {

// "BOOT-ID:PID:START", where START is the start time in /proc/PID/stat. Of this process.
[[nodiscard]] sbx::Result<std::string> own_identity();

// False when the process has ended for certain: another boot, no such pid, another start time, or
// one that nobody has reaped (a zombie).
// Anything that cannot be read or parsed counts as alive, so that nothing is released by mistake.
[[nodiscard]] bool is_alive(const std::string& identity);

}  // namespace agentd::ledger
