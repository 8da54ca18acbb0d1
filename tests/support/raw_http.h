// A client that says exactly the bytes it is told to, for tests of servers. Blocking, with a
// deadline on every wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace sbx::test {

inline constexpr std::chrono::seconds kHttpPatience{60};

struct RawReply {
  int status = 0;    // 0: the connection ended before a whole reply came
  std::string head;  // with the status line
  std::string body;  // decoded, where chunked
  bool cut = false;  // it began, and the connection ended before its end

  // The first field of that name, "" for none.
  [[nodiscard]] std::string field(std::string_view name) const;
};

class RawClient {
 public:
  // An unconnected client when it fails: connected() says so.
  static RawClient to_unix(const std::string& path);
  static RawClient to_port(std::uint16_t port);  // of 127.0.0.1
  explicit RawClient(UniqueFd socket) : socket_(std::move(socket)) {}

  [[nodiscard]] bool connected() const { return socket_.valid(); }
  [[nodiscard]] int fd() const { return socket_.get(); }

  // False when the peer does not take all of it (closed, or not reading for kHttpPatience).
  bool send(std::string_view bytes);
  void shut_down_writing();
  void close() { socket_.reset(); }

  // The next reply; `to_head`: to a HEAD request, which has no body.
  RawReply reply(bool to_head = false);
  // send() and reply().
  RawReply ask(std::string_view bytes);
  // Everything up to the end of the connection, or to `patience`.
  std::string read_to_end(std::chrono::milliseconds patience = kHttpPatience);
  // True when the peer closes within `patience` (what it says before is dropped).
  bool closed_by_peer(std::chrono::milliseconds patience = kHttpPatience);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Reads more into buffer_. False at the end, or when the deadline has passed.
  bool read_more(TimePoint deadline);
  bool read_body(RawReply& reply, TimePoint deadline);
  bool read_chunked(RawReply& reply, TimePoint deadline);
  bool take(std::string& into, std::size_t bytes, TimePoint deadline);
  bool take_line(std::string& line, TimePoint deadline);

  UniqueFd socket_;
  std::string buffer_;
  bool ended_ = false;
};

// "METHOD TARGET HTTP/1.1" with Host, Content-Length when there is a body, and `fields`.
[[nodiscard]] std::string http_request(std::string_view method, std::string_view target,
                                       std::string_view body = {}, std::string_view fields = {});

}  // namespace sbx::test
