// The spawner's own side: its set-up and its loop. Stage: spawn; runs in the spawner process alone.
#pragma once

#include <sys/types.h>

#include "runtime/base/unique_fd.h"
#include "runtime/spawn/spawner.h"

namespace sbx::spawn {

// Never returns. Ends when the supervisor closes `socket` or dies.
[[noreturn]] void run_spawner(UniqueFd socket, const SpawnerOptions& options, pid_t parent);

}  // namespace sbx::spawn
