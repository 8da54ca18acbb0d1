// Request, Responder, Handler: what a route of the server is made of.
//
// A handler is a coroutine on the server's loop. It gets a parsed request, answers it once, whole
// or as a stream, and returns. Both objects belong to the connection and live until the handler has
// returned; nothing may keep them longer. A handler that returns without an answer, or by an
// exception, makes a 500.
//
//   async::Task<void> Routes::hello(http::Request& request, http::Responder& responder) {
//     co_await responder.send(http::json_response("{}"));
//   }
//   router.add({.method = Method::kGet, .path = "/v1/hello",
//               .handler = [&](auto& q, auto& r) { return routes.hello(q, r); }});
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "http/async/cancellation.h"
#include "http/async/task.h"
#include "http/message.h"
#include "http/problem.h"
#include "http/uri.h"

namespace sbx::http {

// The next piece of a streamed body.
struct BodyPiece {
  enum class Kind : std::uint8_t {
    kData,
    kEnd,     // the whole body was read
    kFailed,  // `problem` says how: cut off, malformed, over the limit, too slow. Answer with it
  };
  Kind kind = Kind::kEnd;
  std::string data;  // kData: 1 byte to 64 KiB
  Problem problem;
};

// Where a streamed body comes from: the connection, or a test's own.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // After kEnd or kFailed: the same again. A client that waits for "100 Continue" gets it by the
  // first call. `stop` (may be null) raised ends the wait for the client as kFailed, for good.
  [[nodiscard]] virtual async::Task<BodyPiece> read(const async::Cancellation* stop) = 0;
};

struct Request {
  Method method = Method::kGet;
  Target target;
  Headers headers;
  Peer peer;
  std::string_view route;                         // the template that matched
  std::map<std::string, std::string> parameters;  // of the template, decoded; all are there

  std::string body;                             // routes with BodyMode::kWhole
  BodySource* stream = nullptr;                 // routes with BodyMode::kStream
  std::optional<std::uint64_t> content_length;  // as announced; none for chunked

  // Raised when the client is gone (on a Unix socket: closed, not only shut down for writing; on
  // TCP: either), when it took too long to read, or when the server's drain time is over. Make the
  // run's own Cancellation a child of it.
  const async::Cancellation* gone = nullptr;
};

class Responder {
 public:
  virtual ~Responder() = default;

  // The whole answer. Returns when the client has it in its socket, or is gone. Precondition, as
  // for begin(): nothing was sent before.
  [[nodiscard]] virtual async::Task<void> send(Response response) = 0;

  // Sends the head of a streamed answer at once, with `head.body`, its first piece, if there is one
  // already. With `length` the body has exactly that many bytes; without, it is chunked (HTTP/1.0:
  // ends with the connection).
  virtual void begin(Response head, std::optional<std::uint64_t> length = std::nullopt) = 0;

  // One piece of the body, any size; it is held until it is sent, so that 64 KiB are much. Returns
  // when the queue has room again (back-pressure). False: the client is gone, nothing more will be
  // delivered.
  [[nodiscard]] virtual async::Task<bool> write(std::string bytes) = 0;

  // The same without waiting, for live output: false when the queue, or what all unsent answers may
  // have, is at its limit or the client is gone, and then nothing of `bytes` is sent. The caller
  // counts what is lost.
  [[nodiscard]] virtual bool try_write(std::string_view bytes) = 0;

  // The end of a streamed answer, with its last piece, if there is one; returns as write() does,
  // with all delivered to the socket. A stream that is left without (the handler returned early),
  // or whose length was not reached, is cut: the connection closes and the client sees an
  // incomplete message.
  [[nodiscard]] virtual async::Task<bool> finish(std::string last = std::string()) = 0;

  // How far the client is behind the pace at which an answer must be read; at ServerLimits::
  // pace_grace he is left. Zero when nothing waits for him.
  [[nodiscard]] virtual std::chrono::steady_clock::duration behind() const = 0;
  // Leaves him now, as if he were: what is not sent is dropped, and Request::gone raised.
  virtual void leave() = 0;

  // True for HEAD, whose body is dropped: a handler may spare itself the work.
  [[nodiscard]] virtual bool head_only() const = 0;
  [[nodiscard]] virtual bool begun() const = 0;
};

using Handler = std::function<async::Task<void>(Request&, Responder&)>;

}  // namespace sbx::http
