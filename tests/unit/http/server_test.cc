// The server as well-behaved clients see it.
#include "http/server.h"

#include <unistd.h>

#include "tests/unit/http/server_fixture.h"

namespace sbx::http {
namespace {

using std::chrono::milliseconds;
using test::http_request;
using test::RawClient;
using test::RawReply;
using test::RunningServer;

TEST(Server, AnswersARequest) {
  RunningServer server;
  const RawReply reply = server.get("/hello");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "hello\n");
  EXPECT_EQ(reply.field("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(reply.field("Content-Length"), "6");
  EXPECT_FALSE(reply.field("Date").empty());
  EXPECT_EQ(reply.field("Connection"), "");
}

TEST(Server, KeepsAConnectionForManyRequests) {
  RunningServer server;
  RawClient client = server.connect();
  for (int i = 0; i < 100; ++i) {
    const std::string body = "request " + std::to_string(i);
    const RawReply reply = client.ask(http_request("POST", "/echo", body));
    ASSERT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, body);
  }
  EXPECT_EQ(server.counters().accepted, 1U);
  EXPECT_EQ(server.counters().requests, 100U);
}

TEST(Server, AnswersPipelinedRequestsInTheirOrder) {
  RunningServer server;
  RawClient client = server.connect();
  std::string requests;
  for (int i = 0; i < 50; ++i) {
    requests += http_request("POST", "/echo", std::to_string(i));
    requests += http_request("GET", "/pause?ms=1");
  }
  ASSERT_TRUE(client.send(requests));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(client.reply().body, std::to_string(i));
    EXPECT_EQ(client.reply().body, "paused\n");
  }
}

TEST(Server, GivesHandlersParametersAndPeer) {
  RunningServer server;
  const RawReply reply = server.get("/files/a%20b/c%2Fd");
  EXPECT_EQ(reply.body, "/files/{path...}\npath=a b/c/d\nuid=" + std::to_string(::getuid()) +
                            "\npid=" + std::to_string(::getpid()) + "\n");
}

TEST(Server, HeadHasTheHeadOfGetAndNoBody) {
  RunningServer server;
  RawClient client = server.connect();
  ASSERT_TRUE(client.send(http_request("HEAD", "/hello")));
  const RawReply head = client.reply(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.field("Content-Length"), "6");
  ASSERT_TRUE(client.send(http_request("HEAD", "/stream?pieces=3&size=10")));
  EXPECT_EQ(client.reply(true).field("Transfer-Encoding"), "chunked");
  ASSERT_TRUE(client.send(http_request("HEAD", "/promise?size=0")));
  EXPECT_EQ(client.reply(true).field("Content-Length"), "10");
  EXPECT_EQ(client.ask(http_request("GET", "/hello")).body, "hello\n");
}

TEST(Server, AnAnswerWithoutContentHasNoLength) {
  RunningServer server;
  RawClient client = server.connect();
  const RawReply reply = client.ask(http_request("DELETE", "/items/1"));
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.field("Content-Length"), "");
  EXPECT_EQ(reply.field("Transfer-Encoding"), "");
  EXPECT_EQ(client.ask(http_request("GET", "/hello")).status, 200);
}

TEST(Server, ClosesAfterAnHttp10RequestUnlessAskedToStay) {
  RunningServer server;
  RawClient once = server.connect();
  EXPECT_EQ(once.ask("GET /hello HTTP/1.0\r\n\r\n").body, "hello\n");
  EXPECT_TRUE(once.closed_by_peer());
  RawClient kept = server.connect();
  const RawReply reply = kept.ask("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(reply.field("Connection"), "keep-alive");
  EXPECT_EQ(kept.ask(http_request("GET", "/hello")).status, 200);
}

TEST(Server, AStreamToAnHttp10ClientEndsWithTheConnection) {
  RunningServer server;
  RawClient client = server.connect();
  const RawReply reply =
      client.ask("GET /stream?pieces=3&size=2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(reply.field("Transfer-Encoding"), "");
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_EQ(reply.body, "aabbcc");
}

TEST(Server, ClosesWhenTheClientSaysSo) {
  RunningServer server;
  RawClient client = server.connect();
  const RawReply reply = client.ask(http_request("GET", "/hello", {}, "Connection: close\r\n"));
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_TRUE(client.closed_by_peer());
}

TEST(Server, AClientThatOnlyShutsDownForWritingGetsHisAnswer) {
  RunningServer server;
  RawClient client = server.connect();
  ASSERT_TRUE(client.send(http_request("GET", "/pause?ms=50")));
  client.shut_down_writing();
  EXPECT_EQ(client.reply().body, "paused\n");
}

TEST(Server, WaitsForContinueOnlyAsLongAsItMustBeSaid) {
  RunningServer server;
  RawClient client = server.connect();
  ASSERT_TRUE(
      client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                  "Content-Length: 4\r\n\r\n"));
  EXPECT_EQ(client.reply().status, 100);
  EXPECT_EQ(client.ask("body").body, "body");
  // With the body already there, nobody waits for it.
  const RawReply reply =
      client.ask(http_request("POST", "/echo", "more", "Expect: 100-continue\r\n"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "more");
}

TEST(Server, ARefusedRequestIsNotAskedForItsBody) {
  RunningServer server;
  RawClient client = server.connect();
  const RawReply reply = client.ask(
      "POST /small HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
      "Content-Length: 11\r\n\r\n");
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_TRUE(client.closed_by_peer());
}

TEST(Server, WhatEscapesAHandlerIsA500AndTheServerGoesOn) {
  RunningServer server;
  RawClient client = server.connect();
  const RawReply reply = client.ask(http_request("GET", "/fail"));
  EXPECT_EQ(reply.status, 500);
  EXPECT_NE(reply.body.find("\"code\":\"internal\""), std::string::npos);
  EXPECT_EQ(reply.body.find("a bug"), std::string::npos);
  EXPECT_EQ(client.ask(http_request("GET", "/silent")).status, 500);
  EXPECT_EQ(client.ask(http_request("GET", "/hello")).status, 200);
}

TEST(Server, NoBodyOrMethodOrPathThatThereIsNot) {
  RunningServer server;
  EXPECT_EQ(server.get("/nowhere").status, 404);
  EXPECT_EQ(server.get("/nowhere").field("Content-Type"), "application/problem+json");
  const RawReply method = server.ask(http_request("PUT", "/hello"));
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.field("Allow"), "GET, HEAD");
  EXPECT_EQ(server.ask(http_request("PATCH", "/hello")).status, 405);
  EXPECT_EQ(server.ask(http_request("GET", "/hello", "body")).status, 413);
  EXPECT_EQ(server.get("/%zz").status, 400);
  EXPECT_NE(server.get("/%zz").body.find("bad_encoding"), std::string::npos);
}

TEST(Server, TellsOfEachExchange) {
  RunningServer server;
  (void)server.get("/items/7");
  (void)server.get("/nowhere");
  (void)server.get("/fail");
  ASSERT_TRUE(server.wait_until([&] { return server.exchanges().size() == 3; }));
  const auto exchanges = server.exchanges();
  EXPECT_EQ(exchanges[0].route, "/items/{id}");
  EXPECT_EQ(exchanges[0].status, 200);
  EXPECT_EQ(exchanges[0].peer.uid, ::getuid());
  EXPECT_GT(exchanges[0].bytes_out, 0U);
  EXPECT_EQ(exchanges[1].route, "");
  EXPECT_EQ(exchanges[1].status, 404);
  EXPECT_EQ(exchanges[2].status, 500);
}

TEST(Server, DestroyedItDropsConnectionsAndHandlersAsTheyStand) {
  RunningServer server;
  RawClient idle = server.connect();
  ASSERT_EQ(idle.ask(http_request("GET", "/hello")).status, 200);
  RawClient waiting = server.connect();
  ASSERT_TRUE(waiting.send(http_request("GET", "/wait?begin=1")));
  RawClient writing = server.connect();
  ASSERT_TRUE(writing.send(http_request("GET", "/stream?pieces=1000&size=100000")));
  RawClient sending = server.connect();
  ASSERT_TRUE(sending.send("PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx"));
  ASSERT_TRUE(server.wait_until([&] { return server.seen.waiting == 1; }));
  ASSERT_TRUE(server.wait_until([&] { return server.seen.uploaded == 1; }));
  server.destroy();
  for (RawClient* client : {&idle, &waiting, &writing, &sending}) {
    EXPECT_TRUE(client->closed_by_peer());
  }
  EXPECT_EQ(server.seen.left, 0);
  EXPECT_FALSE(server.connect().connected());
}

TEST(Drain, LetsRunningRequestsFinishAndClosesIdleConnections) {
  RunningServer server;
  RawClient idle = server.connect();
  ASSERT_EQ(idle.ask(http_request("GET", "/hello")).status, 200);
  RawClient busy = server.connect();
  ASSERT_TRUE(busy.send(http_request("GET", "/pause?ms=200")));
  ASSERT_TRUE(server.wait_until([&] { return server.seen.waiting == 1; }));
  auto ended = server.drain(std::chrono::minutes(1));
  EXPECT_TRUE(idle.closed_by_peer());
  const RawReply reply = busy.reply();
  EXPECT_EQ(reply.body, "paused\n");
  EXPECT_EQ(reply.field("Connection"), "close");
  busy.close();
  EXPECT_EQ(ended.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  EXPECT_FALSE(server.connect().connected());
}

TEST(Drain, RaisesGoneForWhatIsLeftWhenItsTimeIsOver) {
  RunningServer server;
  RawClient client = server.connect();
  ASSERT_TRUE(client.send(http_request("GET", "/wait")));
  ASSERT_TRUE(server.wait_until([&] { return server.seen.waiting == 1; }));
  auto ended = server.drain(milliseconds(100));
  EXPECT_EQ(ended.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  EXPECT_EQ(server.seen.left, 1);
}

TEST(Drain, AServerWithoutClientsEndsAtOnce) {
  RunningServer server;
  EXPECT_EQ(server.drain(std::chrono::minutes(1)).wait_for(std::chrono::seconds(30)),
            std::future_status::ready);
}

}  // namespace
}  // namespace sbx::http
