// Server: HTTP/1.1 for clients that may be hostile. One loop, one thread, no thread of its own.
//
// A connection is a task that reads a request, finds its route, runs the handler, writes the
// answer, and again (keep-alive; pipelined requests are answered in order, one at a time). While a
// handler runs, the connection watches for the client's leaving (Request::gone). Parsing is
// Boost.Beast's, in request_parser.cc; what is malformed gets 400 and the connection is closed.
//
// SECURITY: everything that a client can size or delay is bounded here, before any handler runs;
// see ServerLimits. Requests with both Content-Length and Transfer-Encoding are refused, so that no
// two readers of one byte stream can disagree.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/async/loop.h"
#include "http/listener.h"
#include "http/message.h"
#include "http/problem.h"
#include "http/router.h"
#include "runtime/base/result.h"

namespace sbx::http {

struct ServerLimits {
  std::size_t header_bytes = 16U << 10;  // request line and fields: 431 (target alone: 414)
  std::size_t header_fields = 100;
  std::uint64_t body_bytes = 16U << 20;  // where the route says nothing else: 413
  // Whole bodies in memory at one time, of all clients and of one uid: 503, 429.
  std::uint64_t buffered_bytes = 256U << 20;
  std::uint64_t buffered_bytes_per_peer = 96U << 20;
  // Answers that are not sent yet, the same way. Beyond: a whole answer over 16 KiB is refused,
  // try_write() fails, and a writer waits until its own connection has nothing left to send. So
  // each connection adds a small answer or one piece of a stream at most.
  std::uint64_t unsent_bytes = 64U << 20;
  std::uint64_t unsent_bytes_per_peer = 32U << 20;
  std::size_t connections = 1024;          // 503, closed
  std::size_t connections_per_peer = 256;  // by uid; TCP counts as one peer: 429, closed
  std::size_t queue_bytes = 1U << 20;      // unsent output of one connection: try_write fails
  std::size_t requests_per_connection = 100'000;

  std::chrono::milliseconds idle_time{60'000};    // between requests
  std::chrono::milliseconds header_time{10'000};  // first to last byte of a head: 408
  // A body, and an answer, may take `pace_grace` plus a second for each `pace_bytes` of it. Only
  // time spent waiting for the client counts. Slower: 408, or the client counts as gone.
  std::chrono::milliseconds pace_grace{20'000};
  std::uint64_t pace_bytes = 4096;
};

// What was served, for metrics. Monotonic but for the gauges.
struct ServerCounters {
  std::uint64_t accepted = 0;
  std::uint64_t not_admitted = 0;  // connections that are refused: by ServerOptions::admit,
  std::uint64_t peer_is_full = 0;  // over connections_per_peer,
  std::uint64_t all_is_full = 0;   // over connections
  std::uint64_t malformed = 0;     // requests that never reached a handler, by their own fault
  std::uint64_t client_gone = 0;   // requests whose client left before the answer
  std::uint64_t requests = 0;
  std::uint64_t accept_failures = 0;  // attempts: no descriptor, memory or watch
  std::size_t connections = 0;        // gauge
  std::uint64_t buffered_bytes = 0;   // gauge
  std::uint64_t unsent_bytes = 0;     // gauge
};

// One answered request, for the access log.
struct Exchange {
  Method method = Method::kGet;
  std::string_view route;  // empty: none matched
  int status = 0;
  std::uint64_t bytes_out = 0;  // of the body
  std::chrono::microseconds took{0};
  Peer peer;
  bool client_gone = false;
  std::string_view failure{};  // what an exception that left the handler said
};

struct ServerOptions {
  ServerLimits limits{};
  // False: 403 `peer_refused`, closed. Unset: everybody whom the socket's mode lets connect.
  std::function<bool(const Peer&)> admit{};
  std::function<void(const Exchange&)> on_exchange{};
  // Told of each problem that the server itself answers with, before it is written: it may quote
  // what the client wrote. Not of those whose every word is the server's own: a connection that is
  // refused, an answer for which there is no room.
  std::function<void(Problem&)> on_problem{};
};

class Server {
 public:
  // `loop` and `router` are borrowed and outlive it.
  Server(async::Loop& loop, const Router& router, ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Drops the connections that are left, and their handlers' frames.
  ~Server();

  // Starts to accept; any number of listeners. Fails when the loop cannot watch it.
  [[nodiscard]] Result<void> listen(Listener listener);

  // Graceful end: closes the listeners and the idle connections, lets handlers finish, and when
  // `deadline` has passed, or `hurry` is raised, raises Request::gone for those that are left.
  // Returns when no connection is left: handlers end soon once `gone` is raised.
  [[nodiscard]] async::Task<void> drain(async::Deadline deadline,
                                        const async::Cancellation* hurry = nullptr);
  // True from drain() on; handlers may refuse new work (503).
  [[nodiscard]] bool draining() const;

  [[nodiscard]] ServerCounters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sbx::http
