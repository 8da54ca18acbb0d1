// Server-sent events, read as they arrive (WHATWG HTML, "Server-sent events"). Pure.
//
// Line ends are LF, CRLF or CR, also split between two reads; a byte order mark at the start is
// skipped; comments (keep-alives) and unknown fields are ignored. An event at the end of the stream
// that no blank line ended is dropped, as the standard says, but take_rest() gives its data: some
// servers leave that line out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace agentd::providers {

inline constexpr std::size_t kMaxSseEventBytes = 1U << 20;

struct SseEvent {
  std::string type;  // "message" when the stream does not say
  std::string data;
  bool operator==(const SseEvent&) const = default;
};

class SseParser {
 public:
  // The events that `bytes` complete. After an event that is too long: none, and failed().
  [[nodiscard]] std::vector<SseEvent> feed(std::string_view bytes);
  [[nodiscard]] bool failed() const { return failed_; }
  // The data of the event that the stream ended in; empty when there is none.
  [[nodiscard]] std::string take_rest();

 private:
  void end_line(std::vector<SseEvent>& events);
  void field(std::string_view name, std::string_view value);

  std::string line_;
  std::string type_;
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool first_line_ = true;
  bool failed_ = false;
};

}  // namespace agentd::providers
