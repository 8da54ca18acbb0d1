#include "runtime/collect/wire.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/base/sys.h"

namespace sbx::collect::wire {
namespace {

// Descriptors in flight are counted per user (RLIMIT_NOFILE, unix(7)); when many runs end at once
// there is nothing to wait on until others have received theirs.
constexpr int kInFlightRetries = 400;
constexpr std::chrono::milliseconds kInFlightPause{5};

bool path_fits_kind(const Record& record, std::string_view path) {
  switch (record.kind) {
    case Kind::kFile:
      return is_plain_relative_path(path);
    case Kind::kRefused:
      return !path.empty();
    case Kind::kRest:
    case Kind::kEnd:
      return path.empty();
  }
  return false;
}

}  // namespace

Result<void> send(int socket, const Record& record, std::string_view path, int fd) {
  std::array<std::uint8_t, kMaxPacket> packet;
  const std::size_t path_size = std::min(path.size(), kMaxPathBytes);
  std::memcpy(packet.data(), &record, sizeof record);
  std::memcpy(packet.data() + sizeof record, path.data(), path_size);
  return send_patiently(socket, {packet.data(), sizeof record + path_size}, fd);
}

Result<void> send_patiently(int socket, std::span<const std::uint8_t> bytes, int fd) {
  const std::span<const int> fds(&fd, fd >= 0 ? 1 : 0);
  auto sent = sys::send_packet(socket, bytes, fds);
  for (int i = 0; i < kInFlightRetries && !sent && sent.error().sys_errno == ETOOMANYREFS; ++i) {
    std::this_thread::sleep_for(kInFlightPause);
    sent = sys::send_packet(socket, bytes, fds);
  }
  return sent;
}

Result<Message> parse(std::span<const std::uint8_t> packet) {
  const auto broken = [](const char* what) {
    Error error;
    error.operation = "collector packet";
    error.detail = what;
    return unexpected(std::move(error));
  };
  Message message;
  if (packet.size() < sizeof(Record) || packet.size() > kMaxPacket) return broken("bad size");
  std::memcpy(&message.record, packet.data(), sizeof(Record));
  const auto kind = static_cast<std::uint32_t>(message.record.kind);
  if (kind < 1 || kind > static_cast<std::uint32_t>(Kind::kEnd)) return broken("unknown kind");
  if (message.record.reason > Reason::kLast) return broken("unknown reason");
  const std::span<const std::uint8_t> rest = packet.subspan(sizeof(Record));
  message.path = {reinterpret_cast<const char*>(rest.data()), rest.size()};
  if (!path_fits_kind(message.record, message.path)) return broken("bad path");
  return message;
}

}  // namespace sbx::collect::wire
