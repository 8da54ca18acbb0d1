#include "http/connection/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <set>

namespace sbx::http {
namespace {

using Clock = std::chrono::steady_clock;

// How long a client may take to close after our last word. Closing at once could reset the
// connection before he has read it.
constexpr std::chrono::seconds kLingerTime{3};

Problem late_head() {
  return {.status = 408,
          .code = problem_code::kRequestTimeout,
          .detail = "the request's header did not arrive in time"};
}

Problem bad_target() {
  return {.status = 400,
          .code = problem_code::kBadEncoding,
          .detail = "the request target is no path with valid %XX"};
}

Problem no_body_here() {
  return {.status = 413, .code = problem_code::kBodyTooLarge, .detail = "this call takes no body"};
}

Problem encoded_body() {
  return {.status = 415,
          .code = problem_code::kUnsupportedEncoding,
          .detail = "a body is taken only as it is, without a Content-Encoding",
          .field = "Content-Encoding",
          .allowed = {"identity"}};
}

// The first parameter that the route does not have, or has twice.
std::optional<Problem> wrong_parameter(const Route& route, const Query& query) {
  if (!route.query) return std::nullopt;
  const std::vector<std::string>& known = *route.query;
  std::set<std::string_view> seen;
  for (const auto& [name, value] : query.all()) {
    const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
    if (is_known && seen.insert(name).second) continue;
    return Problem{
        .status = 400,
        .code = is_known ? problem_code::kDuplicateParameter : problem_code::kUnknownParameter,
        .detail = is_known ? "this query parameter may be there once"
                           : "this call has no such query parameter",
        .field = std::string(name),
        .allowed = known};
  }
  return std::nullopt;
}

Problem bodies_too_large(PeerLedger::Verdict verdict) {
  return not_granted(verdict, problem_code::kBodiesTooLarge,
                     "your requests hold as much memory as they may",
                     "the server holds as many request bodies as it may");
}

bool reserved(std::string& text, std::size_t bytes) {
  try {
    text.reserve(bytes);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Problem internal_error() {
  return {.status = 500,
          .code = problem_code::kInternal,
          .detail = "the server failed to answer this request; its log says why"};
}

}  // namespace

struct Connection::Exchanging {
  Exchanging(Connection& connection, RequestParser& request_parser)
      : parser(request_parser), began(Clock::now()), tasks(connection.core_.loop) {
    RequestHead& head = parser.head();
    request.method = head.method;
    request.content_length = head.content_length;
    request.peer = connection.peer_;
    request.gone = &connection.gone_;
    terms.head_only = head.method == Method::kHead;
    terms.http10 = head.http10;
    const ServerLimits& limits = connection.core_.options.limits;
    terms.keep_alive = head.keep_alive && connection.served_ + 1 < limits.requests_per_connection;
    terms.queue_bytes = limits.queue_bytes;
    terms.draining = &connection.core_.draining;
  }

  RequestParser& parser;
  Clock::time_point began;
  Request request;
  const Route* route = nullptr;
  std::optional<BodyReader> body;
  Answer::Terms terms;
  std::optional<Answer> answer;
  std::uint64_t buffered = 0;  // of the ledger
  std::string failure;
  async::TaskGroup tasks;  // last: its tasks use the others
};

Connection::Connection(Core& core, UniqueFd socket, async::FdWatch watch, Peer peer, bool is_unix)
    : core_(core),
      socket_(std::move(socket)),
      watch_(std::move(watch)),
      peer_(peer),
      is_unix_(is_unix),
      gone_({&core.expired}),
      over_({&core.draining, &gone_}),
      input_(core.loop, watch_, socket_.get()),
      output_(core.loop, watch_, socket_.get(), pace(), gone_, {core.ledger, peer.uid}),
      watches_(core.loop) {}

Connection::~Connection() {
  core_.ledger.disconnect(peer_.uid);
}

Pace Connection::pace() const {
  return {core_.options.limits.pace_grace, core_.options.limits.pace_bytes};
}

async::Task<void> Connection::serve() {
  watches_.spawn(watch_hangup());
  bool again = true;
  while (again) {
    again = co_await serve_one();
    ++served_;
  }
  if (spoke_last_) co_await linger();
}

// True when another request may follow.
async::Task<bool> Connection::serve_one() {
  RequestParser parser({.header_bytes = core_.options.limits.header_bytes,
                        .header_fields = core_.options.limits.header_fields});
  const HeadRead head = co_await read_head(parser);
  spoke_last_ = head != HeadRead::kOver;
  if (head != HeadRead::kRead) co_return false;
  Exchanging current(*this, parser);
  co_await exchange(current);
  core_.ledger.release(peer_.uid, current.buffered);
  report(current);
  co_return current.answer->keeps_alive() && !core_.draining.cancelled();
}

async::Task<Connection::HeadRead> Connection::read_head(RequestParser& parser) {
  const ServerLimits& limits = core_.options.limits;
  if (input_.pending().empty()) {
    input_.shrink();
    const Input::Fill first = co_await input_.fill(async::after(limits.idle_time), &over_);
    if (first != Input::Fill::kData) co_return HeadRead::kOver;
  } else {
    (void)co_await core_.loop.next_turn();  // pipelined: others first
  }
  const async::Deadline deadline = async::after(limits.header_time);
  for (;;) {
    input_.consume(parser.feed(input_.pending()));
    if (parser.stage() == RequestParser::Stage::kFailed) break;
    if (parser.stage() != RequestParser::Stage::kHead) co_return HeadRead::kRead;
    const Input::Fill fill = co_await input_.fill(deadline, &gone_);
    if (fill == Input::Fill::kData) continue;
    ++core_.counters.malformed;
    if (fill == Input::Fill::kLate) co_await refuse(late_head());
    co_return HeadRead::kRefused;
  }
  ++core_.counters.malformed;
  co_await refuse(parser.problem());
  co_return HeadRead::kRefused;
}

// For what never became a request.
async::Task<void> Connection::refuse(Problem problem) {
  Answer answer(output_, nullptr, {});
  co_await answer.send(core_.response_of(std::move(problem)));
}

async::Task<void> Connection::exchange(Exchanging& current) {
  ++core_.counters.requests;
  std::optional<Problem> problem = co_await prepare(current);
  const BodyReader* unread = current.body ? &*current.body : nullptr;
  current.answer.emplace(output_, unread, current.terms);
  if (problem) {
    ++core_.counters.malformed;
    co_await current.answer->send(core_.response_of(*std::move(problem)));
    co_return;
  }
  if (!gone_.cancelled()) co_await run_handler(current);
  if (current.answer->begun() || gone_.cancelled()) co_return;
  co_await current.answer->send(core_.response_of(internal_error()));
}

async::Task<std::optional<Problem>> Connection::prepare(Exchanging& current) {
  RequestHead& head = current.parser.head();
  const bool has_body = current.parser.stage() != RequestParser::Stage::kDone;
  const std::uint64_t default_limit = core_.options.limits.body_bytes;
  // Before anything can be refused: whether the body was read decides on keep-alive.
  current.body.emplace(input_, output_, current.parser, default_limit, pace(), gone_);
  auto target = parse_target(head.target);
  if (!target) co_return bad_target();
  current.request.target = *std::move(target);
  current.request.headers = std::move(head.headers);
  auto found = core_.router.find(head.method, current.request.target);
  if (auto* none = std::get_if<Problem>(&found)) co_return std::move(*none);
  auto& match = std::get<Router::Match>(found);
  current.route = match.route;
  current.request.route = match.route->path;
  current.request.parameters = std::move(match.parameters);
  current.body.emplace(input_, output_, current.parser,
                       match.route->body_limit.value_or(default_limit), pace(), gone_);
  if (match.route->body == BodyMode::kNone && has_body) co_return no_body_here();
  const Headers& headers = current.request.headers;
  const std::size_t encodings = headers.count("Content-Encoding");
  if (encodings > 1 || (encodings == 1 && headers.find("Content-Encoding") != "identity")) {
    co_return encoded_body();
  }
  if (auto wrong = wrong_parameter(*match.route, current.request.target.query)) {
    co_return *std::move(wrong);
  }
  if (match.route->body == BodyMode::kStream) current.request.stream = &*current.body;
  if (match.route->body != BodyMode::kWhole) co_return std::nullopt;
  std::optional<Problem> unreadable = co_await read_whole(current);
  co_return unreadable;
}

async::Task<std::optional<Problem>> Connection::read_whole(Exchanging& current) {
  // Within the limit, or the first read() fails. Pages that are not written cost nothing; growing
  // step by step would cost the body a second time.
  const BodyReader& body = *current.body;
  const auto length = std::min(current.request.content_length.value_or(0), body.limit());
  if (!reserved(current.request.body, length)) co_return no_memory_for_body();
  for (;;) {
    BodyPiece piece = co_await current.body->read(nullptr);
    if (piece.kind == BodyPiece::Kind::kEnd) co_return std::nullopt;
    if (piece.kind == BodyPiece::Kind::kFailed) co_return std::move(piece.problem);
    const auto verdict = core_.ledger.buffer(peer_.uid, piece.data.size());
    if (verdict != PeerLedger::Verdict::kGranted) co_return bodies_too_large(verdict);
    current.buffered += piece.data.size();
    std::string& text = current.request.body;
    if (!reserved(text, text.size() + piece.data.size())) co_return no_memory_for_body();
    text += piece.data;
  }
}

async::Task<void> Connection::run_handler(Exchanging& current) {
  // On TCP a client that closed shows only as the end of input, which a streamed body reads itself.
  if (!is_unix_ && current.request.stream == nullptr) current.tasks.spawn(watch_end());
  try {
    async::Task<void> running = current.route->handler(current.request, *current.answer);
    co_await running;
  } catch (const std::exception& thrown) {
    current.failure = thrown.what();
  } catch (...) {
    current.failure = "an exception that is no std::exception";
  }
}

void Connection::report(const Exchanging& current) {
  const bool left = !current.answer->complete();
  if (left) ++core_.counters.client_gone;
  if (!core_.options.on_exchange) return;
  core_.options.on_exchange(
      {.method = current.request.method,
       .route = current.request.route,
       .status = current.answer->status(),
       .bytes_out = current.answer->body_bytes(),
       .took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - current.began),
       .peer = peer_,
       .client_gone = left,
       .failure = current.failure});
}

// An urgent byte wakes it too: no HTTP client sends one, so it counts as leaving.
async::Task<void> Connection::watch_hangup() {
  (void)co_await watch_.hung_up();  // ends with the connection, which owns this task
  gone_.cancel();
}

async::Task<void> Connection::watch_end() {
  for (;;) {
    const async::Wake wake = co_await watch_.readable(async::kNoDeadline, &gone_);
    if (wake != async::Wake::kReady) co_return;
    char next = 0;
    const ssize_t got = ::recv(socket_.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) gone_.cancel();
    co_return;  // more than nothing is a pipelined request: he is there
  }
}

async::Task<void> Connection::linger() {
  if (gone_.cancelled() || output_.broken()) co_return;
  if (::shutdown(socket_.get(), SHUT_WR) != 0) co_return;
  const async::Deadline deadline = async::after(kLingerTime);
  for (;;) {
    const Input::Fill fill = co_await input_.fill(deadline, &gone_);
    if (fill != Input::Fill::kData) co_return;
    input_.consume(input_.pending().size());
  }
}

}  // namespace sbx::http
