#include "http/server.h"

#include <sys/socket.h>

#include <cerrno>

#include "http/async/fd_watch.h"
#include "http/async/task_group.h"
#include "http/connection/connection.h"
#include "http/connection/core.h"
#include "http/connection/response_head.h"
#include "runtime/base/log.h"
#include "runtime/base/own_limits.h"

namespace sbx::http {
namespace {

// When descriptors or memory are short, the backlog keeps the clients meanwhile.
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kAcceptsInARow = 64;
constexpr std::chrono::seconds kRetryAfter{1};
constexpr std::chrono::seconds kLogPause{30};

Result<Peer> peer_of(int socket, bool is_unix) {
  if (!is_unix) return Peer{};
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return sys_error("getsockopt", "SO_PEERCRED");
  }
  return Peer{credentials.uid, credentials.gid, credentials.pid};
}

Problem too_many_connections(PeerLedger::Verdict verdict) {
  return not_granted(verdict, problem_code::kTooManyConnections,
                     "you have as many connections as you may",
                     "the server has as many connections as it may");
}

Problem peer_refused() {
  return {
      .status = 403, .code = problem_code::kPeerRefused, .detail = "your uid is not admitted here"};
}

Problem no_room(const Error& error) {
  return {.status = 503,
          .code = problem_code::kTooManyConnections,
          .detail = "the server has no room for a connection: " + to_string(error),
          .fix = error.fix,
          .retry_after = kRetryAfter};
}

// One attempt and no waiting: whom we refuse gets no resources. A new socket takes it all.
void refuse(int socket, const Problem& problem) {
  const Response response = to_response(problem);
  const Framing framing{.length = response.body.size(), .close = true};
  const std::string bytes = response_head(response, framing, std::time(nullptr)) + response.body;
  (void)::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)::shutdown(socket, SHUT_WR);
}

// Owns the connection while it is served.
async::Task<void> serve(Core* core, UniqueFd socket, async::FdWatch watch, Peer peer,
                        bool is_unix) {
  Connection connection(*core, std::move(socket), std::move(watch), peer, is_unix);
  co_await connection.serve();
}

bool is_shortage(int failure) {
  return failure == EMFILE || failure == ENFILE || failure == ENOBUFS || failure == ENOMEM;
}

}  // namespace

struct Server::State {
  State(async::Loop& loop, const Router& router, ServerOptions options)
      : core(loop, router, std::move(options)), tasks(loop) {}

  async::Task<void> accept_loop(Listener listener, async::FdWatch watch);
  // False: none is waiting, or descriptors are short (`pause`).
  bool accept_one(const Listener& listener, bool& pause);
  void admit(UniqueFd socket, bool is_unix);
  // Counts a connection that this process has no room for, and says so in the log now and then.
  void note_shortage(const Error& error);

  Core core;
  async::Deadline silent_until{};  // in the log, of shortages
  async::TaskGroup tasks;          // last: its tasks use the core
};

async::Task<void> Server::State::accept_loop(Listener listener, async::FdWatch watch) {
  for (;;) {
    const async::Wake wake = co_await watch.readable(async::kNoDeadline, &core.draining);
    if (wake == async::Wake::kCancelled) co_return;
    bool pause = false;
    for (int i = 0; i < kAcceptsInARow && accept_one(listener, pause); ++i) {
    }
    if (!pause) continue;
    (void)co_await core.loop.sleep_until(async::after(kAcceptPause), &core.draining);
  }
}

bool Server::State::accept_one(const Listener& listener, bool& pause) {
  UniqueFd socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    const int failure = errno;
    pause = is_shortage(failure);
    if (pause) note_shortage(name_scarcity(sys_error("accept4")));
    return failure == EINTR || failure == ECONNABORTED;
  }
  admit(std::move(socket), listener.is_unix());
  return true;
}

void Server::State::note_shortage(const Error& error) {
  ++core.counters.accept_failures;
  const auto now = std::chrono::steady_clock::now();
  if (now < silent_until) return;
  silent_until = now + kLogPause;
  log::error("connections cannot be taken", {{"error", to_string(error)},
                                             {"fix", error.fix},
                                             {"failures", core.counters.accept_failures}});
}

void Server::State::admit(UniqueFd socket, bool is_unix) {
  const auto peer = peer_of(socket.get(), is_unix);
  if (!peer || (core.options.admit && !core.options.admit(*peer))) {
    ++core.counters.not_admitted;
    refuse(socket.get(), peer_refused());
    return;
  }
  auto watch = async::FdWatch::watch(core.loop, socket.get());
  if (!watch) {
    note_shortage(watch.error());
    refuse(socket.get(), no_room(watch.error()));
    return;
  }
  const auto verdict = core.ledger.connect(peer->uid);
  if (verdict != PeerLedger::Verdict::kGranted) {
    const bool all = verdict == PeerLedger::Verdict::kAllIsFull;
    ++(all ? core.counters.all_is_full : core.counters.peer_is_full);
    refuse(socket.get(), too_many_connections(verdict));
    return;
  }
  ++core.counters.accepted;
  tasks.spawn(serve(&core, std::move(socket), *std::move(watch), *peer, is_unix));
}

Server::Server(async::Loop& loop, const Router& router, ServerOptions options)
    : state_(std::make_unique<State>(loop, router, std::move(options))) {}

Server::~Server() = default;

Result<void> Server::listen(Listener listener) {
  SBX_ASSIGN(auto watch, async::FdWatch::watch(state_->core.loop, listener.fd()));
  state_->tasks.spawn(state_->accept_loop(std::move(listener), std::move(watch)));
  return {};
}

async::Task<void> Server::drain(async::Deadline deadline, const async::Cancellation* hurry) {
  state_->core.draining.cancel();
  const async::Wake wake = co_await state_->tasks.join(deadline, hurry);
  if (wake == async::Wake::kReady) co_return;
  state_->core.expired.cancel();
  (void)co_await state_->tasks.join();
}

bool Server::draining() const {
  return state_->core.draining.cancelled();
}

ServerCounters Server::counters() const {
  ServerCounters counters = state_->core.counters;
  counters.connections = state_->core.ledger.connections();
  counters.buffered_bytes = state_->core.ledger.bytes();
  counters.unsent_bytes = state_->core.ledger.unsent();
  return counters;
}

}  // namespace sbx::http
