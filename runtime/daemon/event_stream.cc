#include "runtime/daemon/event_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/base64.h"
#include "runtime/base/utf8.h"

namespace sbx::daemon {
namespace {

// More bytes go into several events, so that a queue that is nearly full still takes some.
constexpr std::size_t kMaxEventBytes = 16 * 1024;

std::string_view name_of(EventStream::Stream stream) {
  return stream == EventStream::Stream::kStdout ? "stdout" : "stderr";
}

bool is_utf8(std::string_view bytes) {
  std::string ignored;
  return append_replacing(ignored, bytes);
}

std::string data_line(std::uint64_t seq, EventStream::Stream stream, std::string_view bytes) {
  const std::string data = is_utf8(bytes) ? R"("data":)" + nlohmann::json(bytes).dump()
                                          : R"("data_base64":")" + encode_base64(bytes) + '"';
  return fmt::format("{{\"seq\":{},\"event\":\"{}\",{}}}\n", seq, name_of(stream), data);
}

std::string lost_line(std::uint64_t seq, EventStream::Stream stream, std::uint64_t bytes) {
  return fmt::format("{{\"seq\":{},\"event\":\"lost\",\"stream\":\"{}\",\"bytes\":{}}}\n", seq,
                     name_of(stream), bytes);
}

// The length of an unfinished but so far valid character at the end, 0 to 3.
std::size_t unfinished_tail(std::string_view bytes) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if (byte < 0x80) return 0;
    if (byte < 0xC0) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::string EventStream::started(std::string_view id, std::string_view limits,
                                 std::string_view layers) {
  return fmt::format(
      "{{\"seq\":{},\"event\":\"started\",\"id\":\"{}\",\"limits\":{},\"layers\":{}}}\n", seq_++,
      id, limits, layers);
}

void EventStream::live(Stream stream, std::string_view bytes) {
  state(stream).seen += bytes.size();
  while (!bytes.empty()) {
    live_piece(stream, bytes.substr(0, kMaxEventBytes));
    bytes.remove_prefix(std::min(bytes.size(), kMaxEventBytes));
  }
}

void EventStream::live_piece(Stream stream, std::string_view bytes) {
  State& own = state(stream);
  own.held += bytes;
  const std::string all = std::move(own.held);
  own.held.clear();
  const std::size_t whole = all.size() - unfinished_tail(all);
  if (whole == 0) {
    own.held = all;
    return;
  }
  std::string lines;
  std::uint64_t seq = seq_;
  if (own.lost > 0) lines += lost_line(seq++, stream, own.lost);
  lines += data_line(seq++, stream, std::string_view(all).substr(0, whole));
  if (try_write_(lines)) {
    seq_ = seq;
    own.lost = 0;
    own.held = all.substr(whole);
  } else {
    own.lost += all.size();
    lost_live_ += all.size();
  }
}

void EventStream::close(const collect::Outcome& outcome) {
  close_stream(Stream::kStdout, outcome.stdout_bytes, outcome.stdout_dropped, outcome.stdout_head);
  close_stream(Stream::kStderr, outcome.stderr_bytes, outcome.stderr_dropped, outcome.stderr_head);
}

void EventStream::tell_lost(Stream stream, std::uint64_t bytes) {
  rest_.push_back({.stream = stream, .lost = bytes});
  state(stream).lost = 0;
}

void EventStream::close_stream(Stream stream, std::string_view bytes, std::uint64_t dropped,
                               std::size_t head) {
  State& own = state(stream);
  const std::size_t end_of_head = dropped > 0 ? std::min(head, bytes.size()) : bytes.size();
  const auto seen = static_cast<std::size_t>(std::min<std::uint64_t>(own.seen, end_of_head));
  if (own.lost > 0 && (seen < end_of_head || dropped == 0)) tell_lost(stream, own.lost);
  rest_.push_back({.stream = stream,
                   .held = std::exchange(own.held, {}),
                   .bytes = bytes.substr(seen, end_of_head - seen)});
  if (dropped == 0) return;
  tell_lost(stream, own.lost + dropped);
  rest_.push_back({.stream = stream, .bytes = bytes.substr(end_of_head)});
}

std::optional<std::string> EventStream::next_closing() {
  while (!rest_.empty()) {
    Rest& rest = rest_.front();
    if (rest.lost > 0) {
      std::string line = lost_line(seq_++, rest.stream, rest.lost);
      rest_.pop_front();
      return line;
    }
    if (!rest.held.empty() || !rest.bytes.empty()) return next_data(rest);
    rest_.pop_front();
  }
  return std::nullopt;
}

// Characters stay whole, but for one that never ends.
std::string EventStream::next_data(Rest& rest) {
  std::string piece = std::exchange(rest.held, {});
  const std::size_t held = piece.size();
  piece += rest.bytes.substr(0, kMaxEventBytes - held);
  if (piece.size() - held < rest.bytes.size()) piece.resize(piece.size() - unfinished_tail(piece));
  rest.bytes.remove_prefix(piece.size() - held);
  return data_line(seq_++, rest.stream, piece);
}

std::string EventStream::result_prefix() {
  return fmt::format("{{\"seq\":{},\"event\":\"result\",\"result\":", seq_++);
}

}  // namespace sbx::daemon
