// What is kept of a session beside its files, and of one that has expired. Stage: daemon. Values,
// and their text in the state directory.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace sbx::daemon {

// Wall-clock time: sessions outlive reboots. Kept in whole seconds.
using SessionTime = std::chrono::system_clock::time_point;

struct SessionRecord {
  std::string id;              // 16 hexadecimal digits
  std::optional<uid_t> owner;  // none: a peer without a uid
  std::uint64_t work = 0;      // quota: bytes
  std::uint64_t work_inodes = 0;
  SessionTime created{};
  std::chrono::seconds idle{};
  std::chrono::seconds age{};
  std::uint32_t payload_id = 0;  // index in the id range, for life; 0 where there is one id

  bool operator==(const SessionRecord&) const = default;
};

// Why a session ended by itself.
enum class Expiry : std::uint8_t { kIdle, kAge };
[[nodiscard]] std::string_view expiry_name(Expiry why);  // "idle", "age"

struct Tombstone {
  std::string id;
  std::optional<uid_t> owner;
  SessionTime expired{};
  Expiry why = Expiry::kIdle;

  bool operator==(const Tombstone&) const = default;
};

[[nodiscard]] bool is_session_id(std::string_view text);

// JSON. Parsing is strict: what sbxd did not write is kInvalid.
[[nodiscard]] std::string to_text(const SessionRecord& record);
[[nodiscard]] Result<SessionRecord> parse_session_record(std::string_view text);
[[nodiscard]] std::string to_text(const Tombstone& tombstone);
[[nodiscard]] Result<Tombstone> parse_tombstone(std::string_view text);
inline constexpr std::size_t kMaxRecordBytes = 4096;

}  // namespace sbx::daemon
