// Streams in both directions: order, back-pressure, and clients that leave or stop reading.
#include "tests/unit/http/server_fixture.h"

namespace sbx::http {
namespace {

using std::chrono::milliseconds;
using test::http_request;
using test::RawClient;
using test::RawReply;
using test::RunningServer;

TEST(Stream, ArrivesWholeAndInOrderWhateverTheSizeOfItsPieces) {
  RunningServer server;
  RawClient client = server.connect();
  for (const char* size : {"1", "4096", "4097", "300000"}) {
    const RawReply reply =
        client.ask(http_request("GET", "/stream?pieces=26&size=" + std::string(size)));
    std::string expected;
    for (char c = 'a'; c <= 'z'; ++c) expected.append(std::strtoul(size, nullptr, 10), c);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.field("Sbx-Run-Id"), "r1");
    EXPECT_TRUE(reply.body == expected) << size;
  }
  EXPECT_EQ(client.ask(http_request("GET", "/stream?pieces=0&size=1")).body, "");
  EXPECT_EQ(client.ask(http_request("GET", "/stream?pieces=3&size=0")).body, "");
  EXPECT_EQ(client.ask(http_request("GET", "/ends")).body, "first last");
  EXPECT_EQ(client.ask(http_request("GET", "/hello")).status, 200);
}

TEST(Stream, AWriterWaitsForASlowReader) {
  RunningServer server({.limits = {.queue_bytes = 100'000}});
  RawClient client = server.connect();
  ASSERT_TRUE(client.send(http_request("GET", "/stream?pieces=200&size=100000")));
  // Unread, so the handler cannot have ended.
  EXPECT_FALSE(client.closed_by_peer(milliseconds(0)));
  EXPECT_TRUE(server.exchanges().empty());
  EXPECT_EQ(client.reply().body.size(), 20'000'000U);
}

TEST(Stream, AReaderThatStopsIsLeftAfterThePace) {
  RunningServer server(
      {.limits = {.pace_grace = milliseconds(200), .pace_bytes = std::uint64_t{1} << 30}});
  RawClient client = server.connect();
  ASSERT_TRUE(client.send(http_request("GET", "/stream?pieces=200&size=100000")));
  ASSERT_TRUE(server.wait_until([&] { return server.exchanges().size() == 1; }));
  EXPECT_TRUE(server.exchanges()[0].client_gone);
  EXPECT_TRUE(client.reply().cut);
}

TEST(Stream, AHandlerIsToldThatItsClientLeft) {
  RunningServer server;
  for (const char* target : {"/wait", "/wait?begin=1"}) {
    server.seen.left = 0;
    RawClient client = server.connect();
    ASSERT_TRUE(client.send(http_request("GET", target)));
    ASSERT_TRUE(server.wait_until([&] { return server.seen.waiting == 1; }));
    client.close();
    EXPECT_TRUE(server.wait_until([&] { return server.seen.left == 1; })) << target;
  }
  EXPECT_TRUE(server.wait_until([&] { return server.counters().client_gone == 2; }));
}

TEST(Stream, AHandlerIsToldEvenWhenMoreRequestsWait) {
  RunningServer server;
  RawClient client = server.connect();
  std::string requests = http_request("GET", "/wait");
  for (int i = 0; i < 100; ++i) requests += http_request("GET", "/hello");
  ASSERT_TRUE(client.send(requests));
  ASSERT_TRUE(server.wait_until([&] { return server.seen.waiting == 1; }));
  client.close();
  EXPECT_TRUE(server.wait_until([&] { return server.seen.left == 1; }));
}

TEST(Stream, ThatFallsShortOfItsPromiseIsCut) {
  RunningServer server;
  const RawReply shorter = server.get("/promise?size=9");
  EXPECT_TRUE(shorter.cut);
  const RawReply longer = server.get("/promise?size=11");
  EXPECT_TRUE(longer.cut);
  EXPECT_EQ(server.get("/promise?size=10").body, "xxxxxxxxxx");
  const RawReply abandoned = server.get("/abandon");
  EXPECT_TRUE(abandoned.cut);
  EXPECT_EQ(abandoned.body, "half");
}

TEST(Stream, ALargeUploadIsReadInPieces) {
  RunningServer server;
  RawClient client = server.connect();
  const std::string body(20U << 20, 'x');
  const RawReply reply = client.ask(http_request("PUT", "/upload", body));
  EXPECT_EQ(reply.body, std::to_string(body.size()));
  EXPECT_EQ(reply.field("Connection"), "");
  EXPECT_EQ(server.counters().buffered_bytes, 0U);
  EXPECT_EQ(client.ask(http_request("GET", "/hello")).status, 200);
}

TEST(Stream, AnUploadThatIsRefusedIsNotTakenForTheNextRequest) {
  RunningServer server;
  RawClient client = server.connect();
  const std::string smuggled = http_request("GET", "/hello");
  const RawReply reply = client.ask(http_request("PUT", "/refuse", smuggled));
  EXPECT_EQ(reply.status, 409);
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_EQ(client.read_to_end(), "");
}

TEST(Stream, ARefusalReachesAClientThatIsStillSending) {
  RunningServer server;
  RawClient client = server.connect();
  const std::string body(8U << 20, 'x');
  const RawReply reply = client.ask(http_request("PUT", "/refuse", body));
  EXPECT_EQ(reply.status, 409);
  EXPECT_FALSE(reply.cut);
}

TEST(Stream, AnUploadOverItsLimitIsStoppedThere) {
  RunningServer server;
  const RawReply reply =
      server.ask("PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 67108865\r\n\r\n");
  EXPECT_EQ(reply.status, 413);
}

}  // namespace
}  // namespace sbx::http
