// A new generation of a workspace on disk, made of what a run left in its /work. Stage: workspace.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/collect/outcome.h"
#include "runtime/plan/request.h"

namespace sbx::workspace {

// Between two entries, which the walker only reads out of memory.
inline constexpr std::chrono::seconds kWalkerPatience{60};

struct Generation {
  plan::WorkspaceSize size;
  bool changed = false;  // false: the same as the old one, entry for entry
  std::vector<collect::RefusedEntry> refused;
};

// Receives the walker's packets from `socket` and builds the tree below `next`, an empty directory
// of the same file system as `old`. Entries that did not change (kind, mode, time and every byte)
// are further names of the old generation's files; the others are new. Comparing bytes, not times
// alone: a program may set a time back, and a store through a mapping does not touch it at all on a
// tmpfs. On success with `changed` everything below `next` is durable, `next` itself included.
//
// Owner and group are the caller's own; files are readable and writable, directories searchable for
// the owner; set-user-id and sticky bits and extended attributes are dropped. Holes stay holes.
// Several names of one file stay names of one file. What the file system of the store does not take
// (a name, a length) is a refused entry.
//
// Blocks on disk. An error means that the walker died, that nothing came of it for `patience`
// (ETIMEDOUT: it, or the spawner that makes it, was stopped), or that the disk failed: `next` is
// worthless then.
[[nodiscard]] Result<Generation> receive_generation(
    int socket, int old, const plan::WorkspaceSize& old_size, int next,
    std::chrono::milliseconds patience = kWalkerPatience);

}  // namespace sbx::workspace
