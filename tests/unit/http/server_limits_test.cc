// Each limit of the server: at it, and one past it.
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/http/server_fixture.h"

namespace sbx::http {
namespace {

using std::chrono::milliseconds;
using test::http_request;
using test::RawClient;
using test::RawReply;
using test::RunningServer;

std::string padded_to(std::size_t size) {
  const std::string bare = http_request("GET", "/hello", {}, "X: \r\n");
  return http_request("GET", "/hello", {}, "X: " + std::string(size - bare.size(), 'a') + "\r\n");
}

TEST(Limits, HeaderBytes) {
  RunningServer server;
  const std::size_t limit = ServerLimits{}.header_bytes;
  EXPECT_EQ(server.ask(padded_to(limit)).status, 200);
  const RawReply over = server.ask(padded_to(limit + 1));
  EXPECT_EQ(over.status, 431);
  EXPECT_NE(over.body.find("header_too_large"), std::string::npos);
  EXPECT_EQ(server.get("/" + std::string(limit, 'a')).status, 414);
}

TEST(Limits, BodyBytesWithALengthAndInChunks) {
  RunningServer server;
  EXPECT_EQ(server.ask(http_request("POST", "/small", "0123456789")).body, "0123456789");
  EXPECT_EQ(server.ask(http_request("POST", "/small", "0123456789a")).status, 413);
  const std::string chunked =
      "POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n";
  EXPECT_EQ(server.ask(chunked + "5\r\n56789\r\n0\r\n\r\n").body, "0123456789");
  const RawReply over = server.ask(chunked + "6\r\n56789a\r\n0\r\n\r\n");
  EXPECT_EQ(over.status, 413);
  EXPECT_NE(over.body.find("body_too_large"), std::string::npos);
}

TEST(Limits, TheDefaultOfBodyBytes) {
  RunningServer server({.limits = {.body_bytes = 1U << 20}});
  const std::string at(1U << 20, 'x');
  EXPECT_EQ(server.ask(http_request("POST", "/echo", at)).body.size(), at.size());
  EXPECT_EQ(server.ask(http_request("POST", "/echo", at + "x")).status, 413);
  // A route's own limit goes beyond it.
  EXPECT_EQ(server.ask(http_request("PUT", "/upload", at + "x")).body,
            std::to_string(at.size() + 1));
}

TEST(Limits, RequestsOfOneConnection) {
  RunningServer server({.limits = {.requests_per_connection = 3}});
  RawClient client = server.connect();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client.ask(http_request("GET", "/hello")).field("Connection"), "");
  }
  EXPECT_EQ(client.ask(http_request("GET", "/hello")).field("Connection"), "close");
  EXPECT_TRUE(client.closed_by_peer());
}

// Connections are accepted in order: an answered request shows that those before were.
RawClient settled(const RunningServer& server) {
  RawClient client = server.connect();
  EXPECT_EQ(client.ask(http_request("GET", "/hello")).status, 200);
  return client;
}

// Not under the sanitizer, which itself opens pipes to see what memory is an object's.
#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
#if !__has_feature(undefined_behavior_sanitizer)
TEST(Limits, AConnectionForWhichNoDescriptorIsLeftIsCountedAndTakenLater) {
  RunningServer server;
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const int next = ::dup(STDIN_FILENO);
  ASSERT_GE(next, 0);
  ::close(next);
  const rlimit tight{static_cast<rlim_t>(next) + 1, old.rlim_max};  // one more, the client's own
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  RawClient client = server.connect();
  const bool counted = server.wait_until([&] { return server.counters().accept_failures > 0; });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_TRUE(counted);
  EXPECT_EQ(client.ask(http_request("GET", "/hello")).status, 200);
}
#endif

TEST(Limits, ConnectionsOfOnePeer) {
  RunningServer server({.limits = {.connections = 10, .connections_per_peer = 2}});
  RawClient first = settled(server);
  RawClient second = settled(server);
  RawClient third = server.connect();
  const RawReply refused = third.reply();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.field("Retry-After"), "1");
  EXPECT_NE(refused.body.find("too_many_connections"), std::string::npos);
  EXPECT_TRUE(third.closed_by_peer());
  first.close();
  EXPECT_TRUE(server.wait_until([&] { return server.counters().connections == 1; }));
  (void)settled(server);
  EXPECT_EQ(server.counters().peer_is_full, 1U);
  EXPECT_EQ(server.counters().all_is_full, 0U);
}

TEST(Limits, ConnectionsOfAll) {
  RunningServer server({.limits = {.connections = 2, .connections_per_peer = 10}});
  const RawClient first = settled(server);
  const RawClient second = settled(server);
  EXPECT_EQ(server.connect().reply().status, 503);
  EXPECT_EQ(server.counters().all_is_full, 1U);
}

TEST(Limits, BufferedBodiesOfOnePeerAndOfAll) {
  const std::string half =
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + std::string(999, 'x');
  for (const bool all : {false, true}) {
    RunningServer server({.limits = {.buffered_bytes = all ? 1500U : 10'000U,
                                     .buffered_bytes_per_peer = all ? 10'000U : 1500U}});
    RawClient first = server.connect();
    ASSERT_TRUE(first.send(half));
    ASSERT_TRUE(server.wait_until([&] { return server.counters().buffered_bytes == 999; }));
    RawClient second = server.connect();
    EXPECT_EQ(second.ask(http_request("POST", "/echo", std::string(501, 'y'))).body.size(), 501U);
    const RawReply refused = server.ask(http_request("POST", "/echo", std::string(502, 'y')));
    EXPECT_EQ(refused.status, all ? 503 : 429);
    EXPECT_NE(refused.body.find("too_many_buffered_bodies"), std::string::npos);
    EXPECT_EQ(first.ask("x").body.size(), 1000U);
    EXPECT_TRUE(server.wait_until([&] { return server.counters().buffered_bytes == 0; }));
  }
}

// What the socket takes by itself depends on the kernel; each of these is far above it.
TEST(Limits, AnswersThatNobodyReadsOfOnePeerAndOfAll) {
  const std::string large(4U << 20, 'x');
  for (const bool all : {false, true}) {
    RunningServer server({.limits = {.unsent_bytes = all ? 6U << 20 : 60U << 20,
                                     .unsent_bytes_per_peer = all ? 60U << 20 : 6U << 20}});
    RawClient unread = server.connect();
    ASSERT_TRUE(unread.send(http_request("POST", "/echo", large)));
    ASSERT_TRUE(server.wait_until([&] { return server.counters().unsent_bytes > 3U << 20; }));
    const RawReply refused = server.ask(http_request("POST", "/echo", large));
    EXPECT_EQ(refused.status, all ? 503 : 429);
    EXPECT_EQ(refused.field("Retry-After"), "1");
    EXPECT_NE(refused.body.find("too_many_unread_answers"), std::string::npos);
    EXPECT_EQ(server.get("/hello").status, 200) << "small answers go on";
    EXPECT_EQ(unread.reply().body.size(), large.size());
    EXPECT_TRUE(server.wait_until([&] { return server.counters().unsent_bytes == 0; }));
    EXPECT_EQ(server.ask(http_request("POST", "/echo", large)).status, 200);
  }
}

TEST(Limits, StreamsThatNobodyReadsShareABudget) {
  constexpr std::size_t kPiece = 50'000;
  RunningServer server({.limits = {.unsent_bytes = 200'000, .unsent_bytes_per_peer = 200'000}});
  std::vector<RawClient> unread;
  for (int i = 0; i < 20; ++i) {
    unread.push_back(server.connect());
    const std::string target = i % 2 == 0 ? "/stream" : "/live";
    ASSERT_TRUE(unread.back().send(http_request("GET", target + "?pieces=200&size=50000")));
  }
  ASSERT_TRUE(server.wait_until([&] { return server.counters().unsent_bytes > 200'000 - kPiece; }));
  EXPECT_EQ(settled(server).ask(http_request("GET", "/hello")).status, 200);
  // A piece, its framing and the end of each, beyond the budget.
  EXPECT_LT(server.counters().unsent_bytes, 200'000 + 20 * (kPiece + 100));
  for (std::size_t i = 0; i < unread.size(); i += 2) {
    EXPECT_EQ(unread[i].reply().body.size(), 200 * kPiece) << "whoever reads gets all";
  }
  unread.clear();
  EXPECT_TRUE(server.wait_until([&] { return server.counters().unsent_bytes == 0; }));
}

TEST(Limits, AChunkThatIsAnnouncedOverTheLimitIsRefusedUnread) {
  RunningServer server;
  const std::string head = "POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(server.ask(head + "b\r\n").status, 413);
  EXPECT_EQ(server.ask(head + "7fffffffffffffff\r\n").status, 413);
  EXPECT_EQ(server.ask(head + "5\r\n01234\r\n6\r\n").status, 413);
  EXPECT_EQ(server.ask(head + "a\r\n0123456789\r\n0\r\n\r\n").status, 200);
}

TEST(Limits, UnsentOutputForWhatDoesNotWait) {
  RunningServer server({.limits = {.queue_bytes = 100'000}});
  RawClient client = server.connect();
  // The client does not read yet: the socket's own buffer and the queue take what they can.
  ASSERT_TRUE(client.send(http_request("GET", "/live?pieces=1000&size=10000")));
  ASSERT_TRUE(server.wait_until([&] { return server.seen.lost > 0; }));
  const RawReply reply = client.reply();
  const std::uint64_t lost = server.seen.lost;
  EXPECT_GT(lost, 0U);
  const std::string last = "\nlost " + std::to_string(lost) + "\n";
  EXPECT_EQ(reply.body.size(), 1000U * 10'000U - lost + last.size());
  EXPECT_EQ(reply.body.substr(reply.body.size() - last.size()), last);
}

}  // namespace
}  // namespace sbx::http
