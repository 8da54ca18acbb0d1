// What the walker of a run's /work tells whoever saves it: one SOCK_SEQPACKET packet per entry.
// Stage: workspace.
//
// A packet is a Record, the path's bytes, and a symbolic link's target. A kFile packet carries one
// descriptor, which says the rest (mode, times, size). Both ends are ours and of one build, so the
// layout is the host's; the reader still checks everything, because names are the payload's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "runtime/base/result.h"
#include "runtime/workspace/tree.h"

namespace sbx::workspace::wire {

enum class Kind : std::uint32_t {
  kDirectory = 1,  // before what is in it
  kFile = 2,       // with its descriptor
  kSymlink = 3,
  kRefused = 4,
  kEnd = 5,  // the walk is complete
};

enum class Reason : std::uint32_t {
  kNone,
  kFifo,
  kSocket,
  kDevice,
  kPathTooLong,  // or too deep; the path shown may be cut
  kUnreadable,   // `sys_errno`
  kLast = kUnreadable,
};

struct Record {
  Kind kind = Kind::kEnd;
  Reason reason = Reason::kNone;
  std::int32_t sys_errno = 0;
  std::uint32_t mode = 0;  // kDirectory: permission bits
  std::uint32_t path_size = 0;
  std::uint32_t target_size = 0;
};
static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) == 24);

inline constexpr std::size_t kMaxPacket = sizeof(Record) + 2 * kMaxPathBytes;

// Blocks until the packet is queued. Sizes are filled in; a longer path is cut. `fd` is borrowed,
// -1 for none. An error when the peer is gone.
[[nodiscard]] Result<void> send(int socket, Record record, std::string_view path,
                                std::string_view target = {}, int fd = -1);

struct Message {
  Record record;
  std::string_view path, target;  // into the bytes given
};
// Never trusts a size, a kind, a reason or a path.
[[nodiscard]] Result<Message> parse(std::span<const std::uint8_t> packet);

}  // namespace sbx::workspace::wire
