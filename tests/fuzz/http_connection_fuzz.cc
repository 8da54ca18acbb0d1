// A whole connection: a client sends these bytes and shuts down. Whatever they are, the server says
// nothing or well-formed responses, gives back what it counted, and ends.
#include <sys/socket.h>

#include <array>
#include <string>

#include "http/connection/connection.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace sbx;
using namespace sbx::http;

// A socket of the default size takes this much without a reader.
constexpr std::size_t kMostBytes = 64U << 10;

async::Task<void> echo(Request& request, Responder& responder) {
  Response response = text_response(std::move(request.body));
  co_await responder.send(std::move(response));
}

async::Task<void> count(Request& request, Responder& responder) {
  responder.begin(text_response({}));
  for (;;) {
    const BodyPiece piece = co_await request.stream->read(nullptr);
    if (piece.kind != BodyPiece::Kind::kData) break;
    const bool sent = co_await responder.write(std::to_string(piece.data.size()));
    if (!sent) co_return;
  }
  (void)co_await responder.finish();
}

async::Task<void> serve(Core& core, UniqueFd socket, async::Loop& loop) {
  auto watch = async::FdWatch::watch(loop, socket.get());
  fuzz::require(watch.has_value());
  (void)core.ledger.connect(std::nullopt);  // the first: granted
  {
    Connection connection(core, std::move(socket), *std::move(watch), {}, true);
    co_await connection.serve();
  }
  loop.stop();
}

std::string read_all(int socket) {
  std::string said;
  std::array<char, 4096> chunk;
  for (ssize_t got = 1; got > 0;) {
    got = ::recv(socket, chunk.data(), chunk.size(), 0);
    if (got > 0) said.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return said;
}

const Router& router() {
  static const Router made = [] {
    Router routes;
    routes.add({Method::kGet, "/x", echo});
    routes.add({Method::kPost, "/x", echo, BodyMode::kWhole, 4096});
    routes.add({Method::kPut, "/{path...}", count, BodyMode::kStream});
    return routes;
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::as_text(data, std::min(size, kMostBytes));
  int ends[2];
  fuzz::require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  UniqueFd client(ends[0]);
  UniqueFd server(ends[1]);
  const ssize_t sent = ::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  fuzz::require(sent == static_cast<ssize_t>(bytes.size()));
  (void)::shutdown(client.get(), SHUT_WR);

  async::Loop loop;
  Core core(loop, router(), {});
  {
    async::TaskGroup tasks(loop);
    tasks.spawn(serve(core, std::move(server), loop));
    loop.run();
  }
  fuzz::require(core.ledger.connections() == 0 && core.ledger.bytes() == 0);
  const std::string said = read_all(client.get());
  fuzz::require(said.empty() || said.starts_with("HTTP/1.1 "));
  return 0;
}
