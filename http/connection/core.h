// Core: what the connections of one Server share. Internal; owned by the Server, outlives them.
#pragma once

#include "http/async/cancellation.h"
#include "http/async/loop.h"
#include "http/connection/peer_ledger.h"
#include "http/problem.h"
#include "http/router.h"
#include "http/server.h"

namespace sbx::http {

struct Core {
  Core(async::Loop& its_loop, const Router& its_router, ServerOptions given)
      : loop(its_loop),
        router(its_router),
        options(std::move(given)),
        ledger({.connections = options.limits.connections,
                .connections_per_peer = options.limits.connections_per_peer,
                .bytes = options.limits.buffered_bytes,
                .bytes_per_peer = options.limits.buffered_bytes_per_peer,
                .unsent = options.limits.unsent_bytes,
                .unsent_per_peer = options.limits.unsent_bytes_per_peer}) {}

  // The field may be a name of the client's: cut once it has been seen whole.
  [[nodiscard]] Response response_of(Problem problem) const {
    constexpr std::size_t kShown = 64;
    if (options.on_problem) options.on_problem(problem);
    problem.field = problem.field.substr(0, kShown);
    return to_response(problem);
  }

  async::Loop& loop;
  const Router& router;
  ServerOptions options;
  PeerLedger ledger;
  ServerCounters counters;
  async::Cancellation draining;  // no new requests
  async::Cancellation expired;   // no old ones either
};

}  // namespace sbx::http
