// Who may connect, and the same server over TCP.
#include <unistd.h>

#include "tests/unit/http/server_fixture.h"

namespace sbx::http {
namespace {

using test::http_request;
using test::RawClient;
using test::RawReply;
using test::RunningServer;

TEST(Peer, WhoIsNotAdmittedIsTold) {
  RunningServer server({.admit = [](const Peer& peer) { return peer.uid != ::getuid(); }});
  RawClient client = server.connect();
  const RawReply reply = client.reply();
  EXPECT_EQ(reply.status, 403);
  EXPECT_NE(reply.body.find("peer_refused"), std::string::npos);
  EXPECT_TRUE(client.closed_by_peer());
  EXPECT_EQ(server.counters().not_admitted, 1U);
}

TEST(Tcp, IsServedTheSameAndHasNoPeerCredentials) {
  RunningServer server({.tcp = true});
  RawClient client = server.connect();
  EXPECT_EQ(client.ask(http_request("GET", "/items/1")).body, "/items/{id}\nid=1\n");
  EXPECT_EQ(client.ask(http_request("POST", "/echo", "body")).body, "body");
}

TEST(Tcp, ARefusalReachesAClientThatIsStillSending) {
  RunningServer server({.tcp = true});
  RawClient client = server.connect();
  const RawReply reply = client.ask(http_request("PUT", "/refuse", std::string(8U << 20, 'x')));
  EXPECT_EQ(reply.status, 409);
  EXPECT_FALSE(reply.cut);
}

TEST(Tcp, AHandlerIsToldThatItsClientLeft) {
  RunningServer server({.tcp = true});
  RawClient client = server.connect();
  ASSERT_TRUE(client.send(http_request("GET", "/wait")));
  ASSERT_TRUE(server.wait_until([&] { return server.seen.waiting == 1; }));
  client.close();
  EXPECT_TRUE(server.wait_until([&] { return server.seen.left == 1; }));
}

TEST(Tcp, PipelinedRequestsAreNoSignOfLeaving) {
  RunningServer server({.tcp = true});
  RawClient client = server.connect();
  ASSERT_TRUE(client.send(http_request("GET", "/pause?ms=50") + http_request("GET", "/hello")));
  EXPECT_EQ(client.reply().body, "paused\n");
  EXPECT_EQ(client.reply().body, "hello\n");
}

}  // namespace
}  // namespace sbx::http
