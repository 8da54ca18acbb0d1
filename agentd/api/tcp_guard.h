// TcpGuard: what a request over TCP must show. Pure.
//
// SECURITY: on a Unix socket the kernel says who asks. On loopback any web page that the person has
// open can send requests, so each must carry the start token, which only who started agentd was
// shown, name this host (DNS rebinding), and, when a browser sent it, come from our own page
// (CSRF).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agentd/redact/secret.h"
#include "http/handler.h"
#include "http/problem.h"

namespace agentd::api {

class TcpGuard {
 public:
  TcpGuard(redact::Secret token, std::uint16_t port) : token_(std::move(token)), port_(port) {}

  // 403 `wrong_host`, `wrong_origin`, 401 `token_required`. The token may stand in the query
  // (`?token=`) or in `Authorization: Bearer`.
  [[nodiscard]] std::optional<sbx::http::Problem> check(const sbx::http::Request& request) const;

 private:
  [[nodiscard]] bool is_own_host(std::string_view host) const;
  [[nodiscard]] bool has_token(const sbx::http::Request& request) const;

  redact::Secret token_;
  std::uint16_t port_;
};

// 256 bits of chance, in hex.
[[nodiscard]] redact::Secret new_token();

}  // namespace agentd::api
