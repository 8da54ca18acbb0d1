// What the walker tells the supervisor: one SOCK_SEQPACKET packet per entry. Stage: collect.
//
// A packet is a Record followed by the path's bytes (relative to /output, as the kernel gave them).
// A kFile packet carries one descriptor (SCM_RIGHTS). Both ends are ours and of one build, so the
// layout is the host's; the reader still checks everything, because the path is the payload's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "runtime/base/result.h"
#include "runtime/collect/names.h"

namespace sbx::collect::wire {

enum class Kind : std::uint32_t {
  kFile = 1,     // accepted: `size` bytes, descriptor attached
  kRefused = 2,  // one entry: `reason`
  kRest = 3,     // `count` more entries, not named one by one; `limit` is a set of reasons, `size`
                 // the limit on files
  kEnd = 4,      // the walk is complete
};

enum class Reason : std::uint32_t {
  kNone,
  kSymlink,
  kHardLink,  // `size` is the number of names
  kFifo,
  kSocket,
  kDevice,
  kFileTooBig,    // `size` against `limit`
  kTotalTooBig,   // the same
  kTooManyFiles,  // against `limit`
  kTooDeep,       // against `limit`
  kPathTooLong,   // the path shown is cut
  kUnreadable,    // `sys_errno`
  kChanged,       // not what it was a moment ago
  kOutOfTime,     // the walk used up its time
  kLast = kOutOfTime,
};

// Reasons as a set, for entries that are counted and not named.
[[nodiscard]] constexpr std::uint64_t reason_bit(Reason reason) {
  return std::uint64_t{1} << static_cast<std::uint32_t>(reason);
}

struct Record {
  Kind kind = Kind::kEnd;
  Reason reason = Reason::kNone;
  std::int32_t sys_errno = 0;
  std::uint32_t at_least = 0;  // kRest: 1 when `count` stopped counting
  std::uint64_t size = 0;
  std::uint64_t limit = 0;
  std::uint64_t count = 0;
};
static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) == 40);

inline constexpr std::size_t kMaxPacket = sizeof(Record) + kMaxPathBytes;

// Blocks until the packet is queued. `fd` is borrowed, -1 for none. An error when the peer is gone.
[[nodiscard]] Result<void> send(int socket, const Record& record, std::string_view path,
                                int fd = -1);

// The same for any packet: waits also while too many descriptors are in flight.
[[nodiscard]] Result<void> send_patiently(int socket, std::span<const std::uint8_t> bytes,
                                          int fd = -1);

struct Message {
  Record record;
  std::string_view path;  // into the bytes given
};
// Never trusts a length, a kind, a reason or a path.
[[nodiscard]] Result<Message> parse(std::span<const std::uint8_t> packet);

}  // namespace sbx::collect::wire
