// EventStream: a run as NDJSON events, for POST …/run?stream=1. Stage: daemon. No I/O of its own.
//
//   {"seq": 0, "event": "started", "id": …, "limits": …, "layers": …}
//   {"seq": 1, "event": "stdout", "data": "42\n"}       or "data_base64", when it is not UTF-8
//   {"seq": 2, "event": "lost", "stream": "stdout", "bytes": 4096}
//   {"seq": 3, "event": "result", "result": …}          once, last
//
// Live output is given to `try_write`, which may refuse it: a reader that does not read loses it,
// and is told how much before the next event of that stream. For each stream the bytes in events
// and those in `lost` add up to what the program wrote. What comes at the end (the tail behind a
// cut, the result) is not live and is never lost.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/collect/outcome.h"

namespace sbx::daemon {

class EventStream {
 public:
  enum class Stream { kStdout, kStderr };
  // All of the bytes, or false and nothing.
  using TryWrite = std::function<bool(std::string_view)>;

  explicit EventStream(TryWrite try_write) : try_write_(std::move(try_write)) {}

  // The first line. `limits` and `layers` are JSON.
  [[nodiscard]] std::string started(std::string_view id, std::string_view limits,
                                    std::string_view layers);
  void live(Stream stream, std::string_view bytes);
  // Live output is over. What lies between it and the result then comes line by line, for as JSON
  // it is a multiple of what is held. `outcome` stays where it is until the last of them.
  void close(const collect::Outcome& outcome);
  [[nodiscard]] std::optional<std::string> next_closing();
  // The last line but for the result itself, which goes between these two.
  [[nodiscard]] std::string result_prefix();
  [[nodiscard]] static std::string_view result_suffix() { return "}\n"; }

  [[nodiscard]] std::uint64_t lost_live() const { return lost_live_; }

 private:
  struct State {
    std::uint64_t seen = 0;  // given to live()
    std::uint64_t lost = 0;  // and not announced yet
    std::string held;        // the start of a character whose rest has not come
  };

  void live_piece(Stream stream, std::string_view bytes);
  // Bytes that are still to be told, or lost ones.
  struct Rest {
    Stream stream;
    std::uint64_t lost = 0;
    std::string held{};  // before `bytes`
    std::string_view bytes{};
  };
  void close_stream(Stream stream, std::string_view bytes, std::uint64_t dropped, std::size_t head);
  void tell_lost(Stream stream, std::uint64_t bytes);
  [[nodiscard]] std::string next_data(Rest& rest);
  [[nodiscard]] State& state(Stream stream) { return streams_[static_cast<std::size_t>(stream)]; }

  TryWrite try_write_;
  std::uint64_t seq_ = 0;  // of the next event
  std::array<State, 2> streams_;
  std::uint64_t lost_live_ = 0;
  std::deque<Rest> rest_;
};

}  // namespace sbx::daemon
