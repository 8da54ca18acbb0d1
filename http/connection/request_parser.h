// RequestParser: the bytes of one HTTP/1 request become a head and body bytes. No I/O.
//
// Internal to the server; Boost.Beast's parser inside. One object per request. Strict where
// leniency would let two readers disagree: one Host, "chunked" as the only Transfer-Encoding and
// never beside a Content-Length, no bare line feeds. Trailers are read and dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"
#include "http/problem.h"

namespace sbx::http {

struct RequestHead {
  Method method = Method::kOther;
  std::string target;
  bool http10 = false;
  Headers headers;
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = false;
  bool expects_continue = false;  // "Expect: 100-continue"
};

class RequestParser {
 public:
  struct Limits {
    std::size_t header_bytes = 0;  // request line, fields and the blank line after them
    std::size_t header_fields = 0;
  };
  enum class Stage : std::uint8_t { kHead, kBody, kDone, kFailed };

  explicit RequestParser(Limits limits);
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;
  ~RequestParser();

  // Takes bytes from the front and says how many; those that are left are given again with more
  // behind them. Stops at the end of the head (stage kBody or kDone), and at the end of the
  // request. Never more than Limits::header_bytes are left over in vain: beyond, it fails.
  [[nodiscard]] std::size_t feed(std::string_view bytes);
  [[nodiscard]] Stage stage() const;

  // From kBody or kDone on.
  [[nodiscard]] RequestHead& head();
  // What the chunk headers that were read announce, together; 0 without chunks.
  [[nodiscard]] std::uint64_t announced_chunks() const;
  // The body bytes that feed() found since the last call.
  [[nodiscard]] std::string take_body();
  // With kFailed: 400, 414, 417 or 431.
  [[nodiscard]] const Problem& problem() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sbx::http
