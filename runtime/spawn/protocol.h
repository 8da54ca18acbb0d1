// What supervisor and spawner say to each other: fixed-size packets. Stage: spawn.
#pragma once

#include <cstdint>

#include "runtime/plan/flat_plan.h"

namespace sbx::spawn {

// What a run leaves behind for the supervisor: mounts that the spawner makes and keeps open.
enum class Tree : std::uint32_t { kOutput, kWork };
inline constexpr std::size_t kTreeCount = 2;
[[nodiscard]] constexpr int tree_slot(Tree tree) {
  return tree == Tree::kOutput ? plan::kSlotOutput : plan::kSlotWork;
}

// Options of a tmpfs as fsconfig(2) takes them; an empty size: there is none.
struct TmpfsText {
  char size[24] = {}, inodes[24] = {}, mode[8] = {}, uid[16] = {};
};

// Supervisor → spawner, on the main socket. Descriptors in order: control socket, sbx-init, the
// init leaf when `has_init_leaf`, then one for every bit of `slots` from the lowest. A packet of
// another size is dropped, and its descriptors closed: that answers who asks whether packets are
// taken at all.
struct LaunchPacket {
  std::uint64_t without_namespaces = 0;
  std::uint32_t slots = 0;  // bit n: a descriptor for slot n follows
  std::uint8_t has_init_leaf = 0;
  std::uint8_t net_namespace = 1;
  std::uint8_t padding[2] = {};
  TmpfsText trees[kTreeCount];
};
static_assert(plan::kSlotCount <= 32);

// Spawner → supervisor, on a run's control socket, in this order.
enum class AnswerKind : std::uint32_t {
  kLaunched = 1,  // with the init's pidfd
  kFailed = 2,    // `operation` and `error` say what; nothing runs
  kEnded = 3,     // init was reaped: `status` as waitpid gives it
};
struct AnswerPacket {
  AnswerKind kind{};
  std::int32_t error = 0;
  std::int32_t status = 0;
  std::int32_t pid = 0;
  std::uint8_t output_empty = 1;  // kEnded: nothing to collect
  char operation[31] = {};
};

// Supervisor → spawner, on the control socket after kEnded, once for each tree: walk it. With one
// descriptor, the socket over which the walker that the spawner forks streams what it finds
// (collect/wire.h, workspace/wire.h); its end of file without an end record is the walker's death.
// Closing the control socket ends the spawner's part. The limits are for /output alone.
struct CollectRequest {
  Tree tree = Tree::kOutput;
  std::uint32_t padding = 0;
  std::uint32_t files = 0;
  std::uint32_t file_depth = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t files_bytes = 0;
};

}  // namespace sbx::spawn
