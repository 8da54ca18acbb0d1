// Client, AsyncClient: HTTP requests to daemons on Unix sockets and to servers of the network.
//
// libcurl inside (client.cc is the only file that includes it). TLS certificates are verified
// against the system's store, always. Redirects are never followed: a 3xx is an answer like any
// other, so that no header of ours (a key) reaches another host. Proxies are those of the
// environment (https_proxy, all_proxy) and for https:// alone: never for what is sent in the clear,
// nor for a Unix socket. No cookies, no .netrc, no other protocol than HTTP/1.1.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "http/async/cancellation.h"
#include "http/async/loop.h"
#include "http/async/task.h"
#include "http/message.h"

namespace sbx::http {

struct ClientResponse {
  int status = 0;
  Headers headers{};
  std::string body{};  // empty when ClientRequest::on_data took it
};

struct ClientRequest {
  Method method = Method::kGet;
  std::string url{};          // "http://…" or "https://…"
  std::string unix_socket{};  // a path to connect to; the URL's host then is only a name
  Headers headers{};
  std::string body{};  // POST and PUT only

  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds timeout{60'000};  // the whole exchange
  std::size_t header_bytes = 64U << 10;       // of the answer
  std::size_t body_bytes = 16U << 20;         // of the answer; with on_data as well

  // Gets the body piece by piece as it comes, with the head, whose `body` is empty. False ends the
  // exchange with kStopped. Called on the thread that performs; may not perform a request itself.
  std::function<bool(const ClientResponse&, std::string_view)> on_data{};
};

struct ClientError {
  enum class Kind : std::uint8_t {
    kBadRequest,   // no valid URL, another protocol, a body for a method that has none
    kUnreachable,  // not resolved, refused, no such socket, no connection in time: nothing of the
                   // request was sent. See sys_errno
    kTls,          // the certificate or the handshake
    kTimeout,
    kCancelled,
    kStopped,   // on_data said so
    kTooLarge,  // the answer is over header_bytes or body_bytes
    kBroken,    // the connection ended in the middle, or what came is no HTTP
  };
  Kind kind = Kind::kBroken;
  std::string detail{};  // never holds a header's value
  int sys_errno = 0;     // of connecting, or 0
};
[[nodiscard]] std::string_view to_string(ClientError::Kind kind);

using ClientResult = std::variant<ClientResponse, ClientError>;

// Blocking; for programs without a loop. Keeps connections open between requests. One thread.
class Client {
 public:
  Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  [[nodiscard]] ClientResult perform(const ClientRequest& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Many requests at a time, on a Loop. Its requests (the tasks) end before it does.
class AsyncClient {
 public:
  explicit AsyncClient(async::Loop& loop);
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;
  ~AsyncClient();

  // Cancelled, or its task destroyed: the connection is closed at once.
  [[nodiscard]] async::Task<ClientResult> perform(
      ClientRequest request, const async::Cancellation* cancellation = nullptr);

 private:
  struct Exchange;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sbx::http
