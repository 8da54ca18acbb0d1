// The status line and header fields of a response, as bytes. Internal to the server.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "http/message.h"

namespace sbx::http {

// How the end of a body is told.
struct Framing {
  std::optional<std::uint64_t> length{};  // Content-Length
  bool chunked = false;
  bool close = false;           // "Connection: close"
  bool say_keep_alive = false;  // to HTTP/1.0
};

// True for a status whose responses have neither body nor Content-Length.
[[nodiscard]] bool is_bodiless(int status);

// SECURITY: names and values are the handlers'; a control character in one (which could end the
// field and begin another) becomes a blank here, whoever let it through.
[[nodiscard]] std::string response_head(const Response& response, const Framing& framing,
                                        std::time_t now);

}  // namespace sbx::http
