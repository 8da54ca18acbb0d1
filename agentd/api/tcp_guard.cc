#include "agentd/api/tcp_guard.h"

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <strings.h>

#include "agentd/redact/random_hex.h"

namespace agentd::api {
namespace {

using sbx::http::Problem;

constexpr std::string_view kBearer = "Bearer ";

// In time that does not depend on where they differ.
bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

bool TcpGuard::is_own_host(std::string_view host) const {
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (host == fmt::format("{}:{}", name, port_)) return true;
  }
  return false;
}

bool TcpGuard::has_token(const sbx::http::Request& request) const {
  const std::string_view token = token_.reveal();
  if (const auto given = request.target.query.find("token"); given && same(*given, token)) {
    return true;
  }
  const auto field = request.headers.find("Authorization").value_or("");
  // The scheme's case does not matter (RFC 9110, 11.1).
  const bool bearer = field.size() >= kBearer.size() &&
                      ::strncasecmp(field.data(), kBearer.data(), kBearer.size()) == 0;
  return bearer && same(field.substr(kBearer.size()), token);
}

std::optional<Problem> TcpGuard::check(const sbx::http::Request& request) const {
  const auto host = request.headers.find("Host");
  if (!host || request.headers.count("Host") != 1 || !is_own_host(*host)) {
    return Problem{.status = 403,
                   .code = "wrong_host",
                   .detail = "The Host of a request must be this machine's loopback address."};
  }
  const auto origin = request.headers.find("Origin");
  if (origin && *origin != fmt::format("http://{}", *host)) {
    return Problem{
        .status = 403, .code = "wrong_origin", .detail = "Pages of other origins may not ask."};
  }
  if (has_token(request)) return std::nullopt;
  return Problem{.status = 401,
                 .code = "token_required",
                 .detail = "A request over TCP needs the token that agentd printed at its start."};
}

redact::Secret new_token() {
  return redact::Secret(redact::random_hex(32));
}

}  // namespace agentd::api
