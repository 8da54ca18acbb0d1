// Problem: an error as clients see it (RFC 9457, application/problem+json).
//
//   {"status": 400, "title": "Bad Request", "code": "unknown_field", "detail": "…", "field":
//    "limits.memroy", "allowed": ["memory", …], "fix": "…"}
//
// `code` is stable and what clients branch on; `detail` is for people and may change. Members that
// are empty are left out. Rendered once, at the edge: a route, or the server itself.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/message.h"

namespace sbx::http {

struct Problem {
  int status = 500;
  std::string code{};    // snake_case: "unknown_field"
  std::string detail{};  // one sentence
  std::string field{};   // the offending one, as a path: "files[2].name"
  std::vector<std::string> allowed{};
  std::string fix{};                                  // what the reader can do
  std::optional<std::chrono::seconds> retry_after{};  // also as header Retry-After
  // Further members, strings: {"expired_at", "…"}.
  std::vector<std::pair<std::string, std::string>> more{};
};

// 503: our memory does not suffice for a request's body at the moment.
[[nodiscard]] Problem no_memory_for_body();

// Invalid UTF-8 becomes U+FFFD. With the header Allow for status 405.
[[nodiscard]] Response to_response(const Problem& problem);

// The codes that the server uses by itself.
namespace problem_code {
inline constexpr char kMalformedRequest[] = "malformed_request";        // 400
inline constexpr char kBadEncoding[] = "bad_encoding";                  // 400, a bad %XX
inline constexpr char kUnknownParameter[] = "unknown_parameter";        // 400
inline constexpr char kDuplicateParameter[] = "duplicate_parameter";    // 400
inline constexpr char kPeerRefused[] = "peer_refused";                  // 403
inline constexpr char kNotFound[] = "not_found";                        // 404
inline constexpr char kMethodNotAllowed[] = "method_not_allowed";       // 405
inline constexpr char kRequestTimeout[] = "request_timeout";            // 408
inline constexpr char kBodyTooLarge[] = "body_too_large";               // 413
inline constexpr char kTargetTooLong[] = "target_too_long";             // 414
inline constexpr char kUnsupportedEncoding[] = "unsupported_encoding";  // 415
inline constexpr char kExpectationFailed[] = "expectation_failed";      // 417
inline constexpr char kTooManyConnections[] = "too_many_connections";   // 429 (peer), 503 (all)
inline constexpr char kBodiesTooLarge[] = "too_many_buffered_bodies";   // 429 (peer), 503 (all)
inline constexpr char kAnswersTooLarge[] = "too_many_unread_answers";   // 429 (peer), 503 (all)
inline constexpr char kHeaderTooLarge[] = "header_too_large";           // 431
inline constexpr char kInternal[] = "internal";                         // 500
inline constexpr char kShuttingDown[] = "shutting_down";                // 503
}  // namespace problem_code

}  // namespace sbx::http
