#include "runtime/workspace/wire.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/collect/names.h"
#include "runtime/collect/wire.h"

namespace sbx::workspace::wire {
namespace {

Unexpected broken(const char* what) {
  Error error;
  error.operation = "walker packet";
  error.detail = what;
  return unexpected(std::move(error));
}

bool fits_kind(const Message& message) {
  const bool has_target = !message.target.empty();
  switch (message.record.kind) {
    case Kind::kDirectory:
    case Kind::kFile:
      return collect::is_plain_relative_path(message.path) && !has_target;
    case Kind::kSymlink:
      return collect::is_plain_relative_path(message.path) && has_target &&
             message.target.find('\0') == std::string_view::npos;
    case Kind::kRefused:
      return !message.path.empty() && !has_target;
    case Kind::kEnd:
      return message.path.empty() && !has_target;
  }
  return false;
}

}  // namespace

Result<void> send(int socket, Record record, std::string_view path, std::string_view target,
                  int fd) {
  path = path.substr(0, kMaxPathBytes);
  target = target.substr(0, kMaxPathBytes);
  record.path_size = static_cast<std::uint32_t>(path.size());
  record.target_size = static_cast<std::uint32_t>(target.size());
  std::array<std::uint8_t, kMaxPacket> packet;
  std::memcpy(packet.data(), &record, sizeof record);
  std::copy(target.begin(), target.end(),
            std::copy(path.begin(), path.end(), packet.begin() + sizeof record));
  const std::size_t size = sizeof record + path.size() + target.size();
  return collect::wire::send_patiently(socket, {packet.data(), size}, fd);
}

Result<Message> parse(std::span<const std::uint8_t> packet) {
  Message message;
  if (packet.size() < sizeof(Record) || packet.size() > kMaxPacket) return broken("bad size");
  std::memcpy(&message.record, packet.data(), sizeof(Record));
  const Record& record = message.record;
  const auto kind = static_cast<std::uint32_t>(record.kind);
  if (kind < 1 || kind > static_cast<std::uint32_t>(Kind::kEnd)) return broken("unknown kind");
  if (record.reason > Reason::kLast) return broken("unknown reason");
  if ((record.mode & ~0777U) != 0) return broken("bad mode");
  if (record.path_size > kMaxPathBytes || record.target_size > kMaxPathBytes ||
      packet.size() - sizeof(Record) != std::size_t{record.path_size} + record.target_size) {
    return broken("bad size");
  }
  const std::string_view text(reinterpret_cast<const char*>(packet.data()) + sizeof(Record),
                              packet.size() - sizeof(Record));
  message.path = text.substr(0, record.path_size);
  message.target = text.substr(record.path_size);
  if (!fits_kind(message)) return broken("bad path");
  return message;
}

}  // namespace sbx::workspace::wire
