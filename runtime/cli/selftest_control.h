// The control side of selftest: the same acts without the sandbox. Stage: edge (sbx-run).
#pragma once

#include <optional>

#include "runtime/cli/host.h"
#include "runtime/cli/selftest_cases.h"
#include "runtime/cli/selftest_ground.h"

namespace sbx::cli {

// None where the control does not apply to this caller. Blocking; at most 10 seconds, and no longer
// than until `cancel_fd` (borrowed) is readable.
[[nodiscard]] std::optional<Observation> run_control(const AttackCase& attack,
                                                     const ControlGround& ground,
                                                     int cancel_fd = -1);

// In a forked child: fresh user, mount, net, ipc and uts namespaces. As nobody of the host's (root
// becomes an id that is nobody's), and root of the new ones; everything is routed to a loopback
// that is up.
[[nodiscard]] Act enter_throw_away();

// In a net namespace of one's own: its loopback is up, and every address there is answered by it.
[[nodiscard]] Act lead_everything_to_loopback();

}  // namespace sbx::cli
