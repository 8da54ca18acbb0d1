// The id maps of the outer user namespace. Stage: spawn; runs in the supervisor, outside.
#pragma once

#include <sys/types.h>

#include "runtime/base/result.h"
#include "runtime/spawn/spawner.h"

namespace sbx::spawn {

// Writes the maps of `pid`, our own unreaped child (so the number cannot mean another process):
// root writes them itself, a user has newuidmap and newgidmap do it. With a single id the
// spawner maps itself and this does nothing.
[[nodiscard]] Result<void> write_outer_maps(pid_t pid, const SpawnerOptions& options);

// The spawner's own part for a single id: "0 UID 1", setgroups denied.
[[nodiscard]] Result<void> write_own_map(const SpawnerOptions& options);

}  // namespace sbx::spawn
