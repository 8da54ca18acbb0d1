// The server and clients that send what they should not.
#include "tests/unit/http/server_fixture.h"

namespace sbx::http {
namespace {

using namespace std::string_literals;
using std::chrono::milliseconds;
using test::http_request;
using test::RawClient;
using test::RawReply;
using test::RunningServer;
using test::ServerSetup;

// Each of these must be refused by itself, with the connection closed, and nobody else disturbed.
TEST(BadInput, IsRefusedAndTheConnectionClosed) {
  RunningServer server;
  RawClient other = server.connect();
  for (const std::string& bad : {
           "nonsense\r\n\r\n"s,
           "GET /hello\0 HTTP/1.1\r\nHost: a\r\n\r\n"s,
           "GET /hello HTTP/1.1\r\nHost: a\0b\r\n\r\n"s,
           "GET /hello HTTP/1.1\r\n\r\n"s,
           "GET /hello HTTP/3.0\r\nHost: a\r\n\r\n"s,
           "GET /hello HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"s,
           "GET /hello HTTP/1.1\r\nHost: a\r\nX: b\r\n\tfolded\r\nY: c\r\n\r\n"s,
           "GET /hello HTTP/1.1\r\n folded\r\nHost: a\r\n\r\n"s,
           "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n \r\n\r\nx"s,
           "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"s,
           "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n"s,
           "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
           "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"s,
           "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"s,
           "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n"s,
       }) {
    RawClient client = server.connect();
    const RawReply reply = client.ask(bad + "GET /hello HTTP/1.1\r\nHost: smuggled\r\n\r\n");
    EXPECT_EQ(reply.status, 400) << bad;
    EXPECT_EQ(reply.field("Connection"), "close") << bad;
    EXPECT_EQ(reply.field("Content-Type"), "application/problem+json") << bad;
    EXPECT_EQ(client.read_to_end(), "") << bad;
    EXPECT_EQ(other.ask(http_request("GET", "/hello")).status, 200) << bad;
  }
  EXPECT_EQ(server.counters().malformed, 14U);
}

TEST(BadInput, AnAnnouncedBodyThatIsHugeIsRefusedUnread) {
  RunningServer server;
  const RawReply reply =
      server.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n");
  EXPECT_EQ(reply.status, 413);
}

TEST(BadInput, AHundredMegabytesAreRefusedWhileTheyCome) {
  RunningServer server;
  RawClient client = server.connect();
  const std::string block(1U << 20, 'x');
  ASSERT_TRUE(client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
  for (int i = 0; i < 100; ++i) {
    // The server stops to read some time after its limit; then sending fails.
    if (!client.send("100000\r\n" + block + "\r\n")) break;
  }
  const RawReply reply = client.reply();
  EXPECT_EQ(reply.status, 413);
  EXPECT_TRUE(server.wait_until([&] { return server.counters().buffered_bytes == 0; }));
}

TEST(BadInput, HalfARequestEndsWithItsClient) {
  RunningServer server;
  const std::string request = http_request("POST", "/echo", "0123456789");
  for (const std::size_t size : {1U, 10U, 30U, static_cast<unsigned>(request.size() - 1)}) {
    RawClient client = server.connect();
    ASSERT_TRUE(client.send(request.substr(0, size)));
    client.close();
  }
  EXPECT_TRUE(server.wait_until([&] { return server.counters().connections == 0; }));
  EXPECT_EQ(server.get("/hello").status, 200);
}

TEST(BadInput, AClientThatShutsDownInTheMiddleIsToldSo) {
  RunningServer server;
  RawClient client = server.connect();
  ASSERT_TRUE(client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234"));
  client.shut_down_writing();
  EXPECT_EQ(client.reply().status, 400);
}

TEST(BadInput, AHeaderThatTrickles) {
  RunningServer server({.limits = {.header_time = milliseconds(200)}});
  RawClient client = server.connect();
  const auto began = std::chrono::steady_clock::now();
  std::string request = "GET /hello HTTP/1.1\r\nHost: a\r\nX: ";
  bool open = true;
  for (std::size_t i = 0; open; ++i) {
    ASSERT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
    open = client.send(i < request.size() ? request.substr(i, 1) : "a") &&
           !client.closed_by_peer(milliseconds(5));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(190));
}

TEST(BadInput, AHeaderThatStopsGets408) {
  RunningServer server({.limits = {.header_time = milliseconds(100)}});
  RawClient client = server.connect();
  const RawReply reply = client.ask("GET /hello HTTP/1.1\r\nHo");
  EXPECT_EQ(reply.status, 408);
  EXPECT_NE(reply.body.find("request_timeout"), std::string::npos);
  EXPECT_TRUE(client.closed_by_peer());
}

TEST(BadInput, ABodyThatStopsOrTricklesGets408) {
  RunningServer server(
      {.limits = {.pace_grace = milliseconds(200), .pace_bytes = std::uint64_t{1} << 20}});
  RawClient stopped = server.connect();
  EXPECT_EQ(stopped.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123").status,
            408);
  RawClient trickling = server.connect();
  ASSERT_TRUE(trickling.send("PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"));
  std::string said;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (said.empty() && std::chrono::steady_clock::now() < deadline) {
    if (!trickling.send("x")) break;
    said = trickling.read_to_end(milliseconds(5));
  }
  EXPECT_EQ(said.substr(0, 12), "HTTP/1.1 408");
}

TEST(BadInput, ABodyAtTheRateIsReadHoweverLongItTakes) {
  RunningServer server({.limits = {.pace_grace = milliseconds(300), .pace_bytes = 1000}});
  RawClient client = server.connect();
  ASSERT_TRUE(client.send("PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n"));
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(client.closed_by_peer(milliseconds(50)));
    ASSERT_TRUE(client.send(std::string(1000, 'x'))) << i;
  }
  EXPECT_EQ(client.reply().body, "20000");
  EXPECT_GT(std::chrono::steady_clock::now() - began, milliseconds(900));
}

TEST(BadInput, AnIdleConnectionIsClosedWithoutAWord) {
  RunningServer server({.limits = {.idle_time = milliseconds(100)}});
  RawClient fresh = server.connect();
  EXPECT_EQ(fresh.read_to_end(), "");
  RawClient used = server.connect();
  ASSERT_EQ(used.ask(http_request("GET", "/hello")).status, 200);
  EXPECT_EQ(used.read_to_end(), "");
}

TEST(BadInput, AFloodOfPipelinedRequestsHoldsNobodyElseUp) {
  RunningServer server;
  RawClient flood = server.connect();
  std::string requests;
  for (int i = 0; i < 2000; ++i) requests += http_request("GET", "/hello");
  std::thread sender([&] { (void)flood.send(requests); });
  for (int i = 0; i < 50; ++i) EXPECT_EQ(server.get("/hello").status, 200);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(flood.reply().status, 200) << i;
  sender.join();
}

TEST(BadInput, AQueryParameterThatIsUnknownOrThereTwiceIsRefused) {
  RunningServer server;
  for (const char* good : {"/strict", "/strict?a=1", "/strict?b=1&a=2", "/hello?any=1&any=2"}) {
    EXPECT_EQ(server.get(good).status, 200) << good;
  }
  const RawReply unknown = server.get("/strict?a=1&c=2");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_NE(unknown.body.find("unknown_parameter"), std::string::npos);
  EXPECT_NE(unknown.body.find(R"("field":"c","allowed":["a","b"])"), std::string::npos)
      << unknown.body;
  const RawReply twice = server.get("/strict?a=1&b=2&a=1");
  EXPECT_EQ(twice.status, 400);
  EXPECT_NE(twice.body.find("duplicate_parameter"), std::string::npos);
}

// Whoever looks for keys in it sees the name whole, and the client no more than its beginning.
TEST(BadInput, AProblemOfTheServersOwnIsShownBeforeItIsSent) {
  ServerSetup setup;
  setup.on_problem = [](Problem& problem) {
    const std::size_t at = problem.field.find(std::string(40, 'k'));
    if (at != std::string::npos) problem.field.replace(at, 40, "[none]");
  };
  RunningServer server(setup);
  const std::string name = std::string(50, 'a') + std::string(40, 'k') + std::string(100, 'b');
  EXPECT_NE(server.get("/strict?" + name + "=1")
                .body.find(R"("field":")" + std::string(50, 'a') + "[none]" + std::string(8, 'b') +
                           R"(")"),
            std::string::npos);
}

TEST(BadInput, AnEncodedBodyIsRefused) {
  RunningServer server;
  const auto with = [&](const std::string& fields) {
    return server.ask(http_request("POST", "/echo", "body", fields));
  };
  EXPECT_EQ(with("Content-Encoding: identity\r\n").status, 200);
  EXPECT_EQ(with("Content-Encoding: identity\r\nContent-Encoding: gzip\r\n").status, 415);
  const RawReply refused = with("Content-Encoding: gzip\r\n");
  EXPECT_EQ(refused.status, 415);
  EXPECT_NE(refused.body.find("unsupported_encoding"), std::string::npos);
}

}  // namespace
}  // namespace sbx::http
