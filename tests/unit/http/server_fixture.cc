#include "tests/unit/http/server_fixture.h"

#include <cstdlib>
#include <stdexcept>

namespace sbx::http::test {
namespace {

using async::Task;

std::uint64_t number(const Request& request, std::string_view name, std::uint64_t otherwise = 0) {
  const auto text = request.target.query.find(name);
  return text ? std::strtoull(std::string(*text).c_str(), nullptr, 10) : otherwise;
}

Task<void> hello(Request&, Responder& responder) {
  co_await responder.send(text_response("hello\n"));
}

Task<void> echo(Request& request, Responder& responder) {
  Response response{200, {}, "application/octet-stream", std::move(request.body)};
  co_await responder.send(std::move(response));
}

// What the router found, and the peer.
Task<void> describe(Request& request, Responder& responder) {
  std::string text = std::string(request.route) + "\n";
  for (const auto& [name, value] : request.parameters) text += name + "=" + value + "\n";
  if (request.peer.uid) text += "uid=" + std::to_string(*request.peer.uid) + "\n";
  if (request.peer.pid) text += "pid=" + std::to_string(*request.peer.pid) + "\n";
  co_await responder.send(text_response(std::move(text)));
}

Task<void> upload(Seen& seen, Request& request, Responder& responder) {
  std::uint64_t bytes = 0;
  for (;;) {
    const BodyPiece piece = co_await request.stream->read(nullptr);
    if (piece.kind == BodyPiece::Kind::kFailed) {
      co_await responder.send(to_response(piece.problem));
      co_return;
    }
    if (piece.kind == BodyPiece::Kind::kEnd) break;
    bytes += piece.data.size();
    seen.uploaded = bytes;
  }
  co_await responder.send(text_response(std::to_string(bytes)));
}

// Answers without a look at the body.
Task<void> refuse_upload(Request&, Responder& responder) {
  const Problem busy{.status = 409, .code = "busy"};
  co_await responder.send(to_response(busy));
}

// ?pieces=&size=: as many writes, each of so many bytes.
Task<void> stream(Request& request, Responder& responder) {
  responder.begin({200, {{"Sbx-Run-Id", "r1"}}, "application/x-ndjson", {}});
  const std::uint64_t pieces = number(request, "pieces");
  for (std::uint64_t i = 0; i < pieces; ++i) {
    const bool sent = co_await responder.write(
        std::string(number(request, "size"), static_cast<char>('a' + i % 26)));
    if (!sent) co_return;
  }
  (void)co_await responder.finish();
}

// ?pieces=&size=: the same without waiting; then what was lost, as the last line.
Task<void> live(Seen& seen, Request& request, Responder& responder) {
  responder.begin({200, {}, "application/x-ndjson", {}});
  const std::string piece(number(request, "size"), 'x');
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < number(request, "pieces"); ++i) {
    if (!responder.try_write(piece)) lost += piece.size();
  }
  seen.lost = lost;
  (void)co_await responder.write("\nlost " + std::to_string(lost) + "\n");
  (void)co_await responder.finish();
}

// Begins, then waits until the client has left.
Task<void> wait(Seen& seen, async::Loop& loop, Request& request, Responder& responder) {
  ++seen.waiting;
  if (request.target.query.find("begin")) responder.begin({200, {}, "text/plain", {}});
  const async::Wake wake =
      co_await loop.sleep_until(async::after(std::chrono::minutes(1)), request.gone);
  --seen.waiting;
  if (wake == async::Wake::kCancelled) ++seen.left;
}

Task<void> pause(async::Loop& loop, Seen& seen, Request& request, Responder& responder) {
  ++seen.waiting;
  (void)co_await loop.sleep_until(async::after(std::chrono::milliseconds(number(request, "ms"))),
                                  request.gone);
  --seen.waiting;
  co_await responder.send(text_response("paused\n"));
}

Task<void> fail(Request&, Responder&) {
  throw std::runtime_error("a bug of the handler");
  co_return;  // makes it a coroutine
}

Task<void> silent(Request&, Responder&) {
  co_return;
}

// Promises ten bytes and gives ?size= of them.
Task<void> promise(Request& request, Responder& responder) {
  responder.begin({200, {}, "text/plain", {}}, 10);
  const bool sent = co_await responder.write(std::string(number(request, "size"), 'x'));
  if (!sent) co_return;
  (void)co_await responder.finish();
}

Task<void> ends(Request&, Responder& responder) {
  responder.begin({200, {}, "text/plain", "first "});
  (void)co_await responder.finish("last");
}

Task<void> abandon(Request&, Responder& responder) {
  responder.begin({200, {}, "text/plain", {}});
  (void)co_await responder.write("half");
}

Task<void> deleted(Request&, Responder& responder) {
  co_await responder.send(no_content());
}

}  // namespace

void RunningServer::add_routes() {
  const auto simple = [this](Method method, std::string where, auto* handler,
                             BodyMode body = BodyMode::kNone) {
    router_.add(
        {method, std::move(where),
         [handler](Request& request, Responder& responder) { return handler(request, responder); },
         body, std::nullopt});
  };
  simple(Method::kGet, "/hello", hello);
  simple(Method::kPost, "/echo", echo, BodyMode::kWhole);
  simple(Method::kGet, "/items/{id}", describe);
  simple(Method::kDelete, "/items/{id}", deleted);
  simple(Method::kGet, "/files/{path...}", describe);
  simple(Method::kPut, "/refuse", refuse_upload, BodyMode::kStream);
  simple(Method::kGet, "/stream", stream);
  Route strict{Method::kGet, "/strict", [](Request& q, Responder& r) { return describe(q, r); }};
  strict.query = {"a", "b"};
  router_.add(std::move(strict));
  simple(Method::kGet, "/fail", fail);
  simple(Method::kGet, "/silent", silent);
  simple(Method::kGet, "/promise", promise);
  simple(Method::kGet, "/ends", ends);
  simple(Method::kGet, "/abandon", abandon);
  router_.add({Method::kPut, "/upload",
               [this](Request& q, Responder& r) { return upload(seen, q, r); }, BodyMode::kStream,
               std::uint64_t{64} << 20});
  router_.add({Method::kPost, "/small", [](Request& q, Responder& r) { return echo(q, r); },
               BodyMode::kWhole, 10});
  router_.add(
      {Method::kGet, "/live", [this](Request& q, Responder& r) { return live(seen, q, r); }});
  router_.add({Method::kGet, "/wait",
               [this](Request& q, Responder& r) { return wait(seen, loop_, q, r); }});
  router_.add({Method::kGet, "/pause",
               [this](Request& q, Responder& r) { return pause(loop_, seen, q, r); }});
}

RunningServer::RunningServer(ServerSetup setup) {
  char made[] = "/tmp/test-sbx-http-XXXXXX";
  directory_ = ::mkdtemp(made);
  path = directory_ + "/s.sock";
  add_routes();
  ServerOptions options{setup.limits, std::move(setup.admit),
                        [this](const Exchange& exchange) { exchanges_.push_back(exchange); },
                        std::move(setup.on_problem)};
  server_ = std::make_unique<Server>(loop_, router_, std::move(options));
  tasks_ = std::make_unique<async::TaskGroup>(loop_);
  auto listener = setup.tcp ? Listener::tcp("127.0.0.1", 0) : Listener::unix_socket({.path = path});
  EXPECT_TRUE(listener) << to_string(listener.error());
  port = listener->port();
  EXPECT_TRUE(server_->listen(*std::move(listener)));
  thread_ = std::thread([this] { loop_.run(); });
}

RunningServer::~RunningServer() {
  if (server_) drain(std::chrono::milliseconds(0)).wait();
  on_loop([this] {
    tasks_.reset();
    server_.reset();
    loop_.stop();
  });
  thread_.join();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

RawClient RunningServer::connect() const {
  return port != 0 ? RawClient::to_port(port) : RawClient::to_unix(path);
}

ServerCounters RunningServer::counters() {
  return on_loop([this] { return server_->counters(); });
}

std::vector<Exchange> RunningServer::exchanges() {
  return on_loop([this] { return exchanges_; });
}

bool RunningServer::wait_until(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    // A turn of the loop is the unit in which its state changes.
    on_loop([] {});
    std::this_thread::yield();
  }
  return true;
}

Task<void> RunningServer::drain_and_tell(std::chrono::milliseconds patience,
                                         std::promise<void>& ended) {
  co_await server_->drain(async::after(patience));
  ended.set_value();
}

std::future<void> RunningServer::drain(std::chrono::milliseconds patience) {
  return on_loop([this, patience] {
    drains_.push_back(std::make_unique<std::promise<void>>());
    tasks_->spawn(drain_and_tell(patience, *drains_.back()));
    return drains_.back()->get_future();
  });
}

}  // namespace sbx::http::test
