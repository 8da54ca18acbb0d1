// What supervisor and spawner say to each other: fixed-size packets. Stage: spawn.
#pragma once

#include <cstdint>

#include "runtime/plan/flat_plan.h"

namespace sbx::spawn {

// Supervisor → spawner, on the main socket. Descriptors in order: control socket, the init leaf
// when `has_init_leaf`, then one for every bit of `slots` from the lowest.
struct LaunchPacket {
  std::uint64_t without_namespaces = 0;
  std::uint32_t slots = 0;  // bit n: a descriptor for slot n follows
  std::uint8_t has_init_leaf = 0;
  std::uint8_t net_namespace = 1;
  std::uint8_t padding[2] = {};
  char output_size[24] = {}, output_inodes[24] = {}, output_mode[8] = {}, output_uid[16] = {};
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

// Supervisor → spawner, on the control socket after kEnded: collect. The spawner forks the
// collector, which streams over the same socket (collect/wire.h). Closing the socket ends the
// spawner's part.
struct CollectRequest {
  std::uint32_t files = 0;
  std::uint32_t file_depth = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t files_bytes = 0;
};

}  // namespace sbx::spawn
