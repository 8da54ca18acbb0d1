// The client, against our own server and against one that says what it is told to.
#include "http/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>

#include "http/listener.h"
#include "tests/support/process.h"
#include "tests/unit/http/on_loop.h"
#include "tests/unit/http/server_fixture.h"

namespace sbx::http {
namespace {

using async::test::run_on;
using std::chrono::milliseconds;
using test::RunningServer;
using Kind = ClientError::Kind;

// Answers every connection with the same bytes after it has read a head, and closes, or holds on.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::string says, bool hold = false)
      : says_(std::move(says)), hold_(hold) {
    auto listener = Listener::tcp("127.0.0.1", 0);
    EXPECT_TRUE(listener);
    listener_.emplace(*std::move(listener));
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    ending_ = true;
    (void)sbx::test::RawClient::to_port(listener_->port());  // wakes it
    thread_.join();
  }
  [[nodiscard]] std::string url(const std::string& scheme = "http") const {
    return scheme + "://127.0.0.1:" + std::to_string(listener_->port()) + "/x";
  }
  std::string heard;  // of the last connection; read it when the exchange is over

 private:
  void serve() {
    while (!ending_) {
      pollfd waited{listener_->fd(), POLLIN, 0};
      (void)::poll(&waited, 1, -1);
      sbx::test::RawClient peer(
          UniqueFd(::accept4(listener_->fd(), nullptr, nullptr, SOCK_CLOEXEC)));
      if (ending_ || !peer.connected()) continue;
      std::string head;
      char byte = 0;
      while (head.find("\r\n\r\n") == std::string::npos && ::recv(peer.fd(), &byte, 1, 0) == 1) {
        head += byte;
      }
      heard = head;
      (void)peer.send(says_);
      if (hold_) (void)peer.closed_by_peer();
    }
  }
  std::string says_;
  bool hold_;
  std::optional<Listener> listener_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

ClientRequest to(const RunningServer& server, Method method, const std::string& target,
                 std::string body = {}) {
  ClientRequest request;
  request.method = method;
  request.body = std::move(body);
  if (server.port != 0) {
    request.url = "http://127.0.0.1:" + std::to_string(server.port) + target;
  } else {
    request.url = "http://sbx" + target;
    request.unix_socket = server.path;
  }
  return request;
}

// The same by the blocking client and by the one on a loop.
class EitherClient : public ::testing::TestWithParam<bool> {
 protected:
  ClientResult perform(const ClientRequest& request) {
    if (!GetParam()) return blocking_.perform(request);
    ClientResult result;
    run_on(loop_,
           [](AsyncClient& client, ClientRequest given, ClientResult& out) -> async::Task<void> {
             out = co_await client.perform(std::move(given));
           }(async_, request, result));
    return result;
  }
  ClientResponse response_to(const ClientRequest& request) {
    ClientResult result = perform(request);
    if (const auto* failure = std::get_if<ClientError>(&result)) {
      ADD_FAILURE() << to_string(failure->kind) << ": " << failure->detail;
      return {};
    }
    return std::get<ClientResponse>(std::move(result));
  }
  ClientError error_of(const ClientRequest& request) {
    ClientResult result = perform(request);
    if (const auto* response = std::get_if<ClientResponse>(&result)) {
      ADD_FAILURE() << "an answer: " << response->status << " " << response->body;
      return {};
    }
    return std::get<ClientError>(std::move(result));
  }
  async::Loop loop_;
  AsyncClient async_{loop_};
  Client blocking_;
};

INSTANTIATE_TEST_SUITE_P(Client, EitherClient, ::testing::Bool(), [](const auto& which) {
  return std::string(which.param ? "OnALoop" : "Blocking");
});

TEST_P(EitherClient, TalksToAUnixSocketAndToAPort) {
  for (const bool tcp : {false, true}) {
    RunningServer server({.tcp = tcp});
    const ClientResponse hello = response_to(to(server, Method::kGet, "/hello"));
    EXPECT_EQ(hello.status, 200);
    EXPECT_EQ(hello.body, "hello\n");
    EXPECT_EQ(hello.headers.find("content-type"), "text/plain; charset=utf-8");
    EXPECT_EQ(response_to(to(server, Method::kPost, "/echo", "body")).body, "body");
    EXPECT_EQ(response_to(to(server, Method::kPut, "/upload", "12345")).body, "5");
    EXPECT_EQ(response_to(to(server, Method::kDelete, "/items/1")).status, 204);
    EXPECT_EQ(response_to(to(server, Method::kHead, "/hello")).body, "");
    EXPECT_EQ(response_to(to(server, Method::kGet, "/nowhere")).status, 404);
    EXPECT_EQ(response_to(to(server, Method::kPost, "/echo")).body, "");
  }
}

TEST_P(EitherClient, KeepsItsConnection) {
  RunningServer server;
  for (int i = 0; i < 5; ++i) (void)response_to(to(server, Method::kGet, "/hello"));
  EXPECT_EQ(server.counters().accepted, 1U);
}

TEST_P(EitherClient, SendsFieldsAsTheyAreAndNoneThatIsTwo) {
  ScriptedServer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  ClientRequest request{.method = Method::kPost, .url = server.url(), .body = "b"};
  request.headers = {{"Authorization", "Bearer key"}, {"X-Empty", ""}};
  (void)response_to(request);
  EXPECT_NE(server.heard.find("Authorization: Bearer key\r\n"), std::string::npos);
  EXPECT_NE(server.heard.find("X-Empty:\r\n"), std::string::npos);
  EXPECT_EQ(server.heard.find("Expect"), std::string::npos);
  EXPECT_EQ(server.heard.find("Content-Type"), std::string::npos);
  request.headers = {{"X", "a\r\nY: b"}};
  EXPECT_EQ(error_of(request).kind, Kind::kBadRequest);
}

TEST_P(EitherClient, KeepsNothingOfOneRequestForTheNext) {
  ScriptedServer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  ClientRequest first{.method = Method::kPut, .url = server.url(), .body = "b"};
  first.headers = {{"Authorization", "Bearer key"}};
  (void)response_to(first);
  (void)response_to({.url = server.url()});
  EXPECT_TRUE(server.heard.starts_with("GET /x HTTP/1.1\r\n")) << server.heard;
  EXPECT_EQ(server.heard.find("Bearer key"), std::string::npos);
  EXPECT_EQ(server.heard.find("Content-Length"), std::string::npos);
}

TEST_P(EitherClient, StreamsTheBodyWithItsStatusKnown) {
  RunningServer server;
  ClientRequest request = to(server, Method::kGet, "/stream?pieces=26&size=10000");
  std::string body;
  request.on_data = [&](const ClientResponse& head, std::string_view bytes) {
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.find("Sbx-Run-Id"), "r1");
    body += bytes;
    return true;
  };
  EXPECT_EQ(response_to(request).body, "");
  EXPECT_EQ(body.size(), 260'000U);
  request.on_data = [](const ClientResponse&, std::string_view) { return false; };
  EXPECT_EQ(error_of(request).kind, Kind::kStopped);
}

TEST_P(EitherClient, TakesAnAnswerOfExactlyItsLimitAndNoByteMore) {
  RunningServer server;
  ClientRequest request = to(server, Method::kGet, "/stream?pieces=1&size=1000");
  request.body_bytes = 1000;
  EXPECT_EQ(response_to(request).body.size(), 1000U);
  request.body_bytes = 999;
  EXPECT_EQ(error_of(request).kind, Kind::kTooLarge);
  request.header_bytes = 20;
  EXPECT_EQ(error_of(request).kind, Kind::kTooLarge);
}

TEST_P(EitherClient, GivesUpAtItsDeadline) {
  RunningServer server;
  ClientRequest request = to(server, Method::kGet, "/wait?begin=1");
  request.timeout = milliseconds(100);
  EXPECT_EQ(error_of(request).kind, Kind::kTimeout);
  EXPECT_TRUE(server.wait_until([&] { return server.seen.left == 1; }));
}

TEST_P(EitherClient, NamesWhyThereIsNobody) {
  ClientRequest request{.url = "http://sbx/"};
  request.unix_socket = "/tmp/sbx-no-such-directory/s.sock";
  const ClientError missing = error_of(request);
  EXPECT_EQ(missing.kind, Kind::kUnreachable);
  EXPECT_EQ(missing.sys_errno, ENOENT);
  const std::uint16_t port = Listener::tcp("127.0.0.1", 0)->port();  // closed by now
  const ClientError refused = error_of({.url = "http://127.0.0.1:" + std::to_string(port) + "/"});
  EXPECT_EQ(refused.kind, Kind::kUnreachable);
  EXPECT_EQ(refused.sys_errno, ECONNREFUSED);
}

TEST_P(EitherClient, AServerThatNeverAnswersTheHandshakeWasSentNothing) {
  ScriptedServer server("", true);
  ClientRequest request{.url = server.url("https")};
  request.connect_timeout = milliseconds(100);
  EXPECT_EQ(error_of(request).kind, Kind::kUnreachable);
}

// Curl reads the environment with each request.
class ProxyOfTheEnvironment {
 public:
  explicit ProxyOfTheEnvironment(const std::string& url) {
    for (const char* name : kNames) (void)::setenv(name, url.c_str(), 1);
  }
  ~ProxyOfTheEnvironment() {
    for (const char* name : kNames) (void)::unsetenv(name);
  }

 private:
  static constexpr const char* kNames[] = {"http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"};
};

TEST_P(EitherClient, NoProxyHearsWhatIsNotEncrypted) {
  ScriptedServer proxy("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy");
  RunningServer port({.tcp = true});
  RunningServer socket;
  const ProxyOfTheEnvironment environment(proxy.url());
  ClientRequest request = to(port, Method::kGet, "/hello");
  request.headers.add("Authorization", "Bearer key");
  EXPECT_EQ(response_to(request).body, "hello\n");
  request.url.replace(0, 4, "HTTP");
  EXPECT_EQ(response_to(request).body, "hello\n");
  EXPECT_EQ(response_to(to(socket, Method::kGet, "/hello")).body, "hello\n");
  EXPECT_EQ(proxy.heard, "");
  // The control: an encrypted one goes through it, asking for a tunnel, which says where to alone.
  request.url = "https://127.0.0.1:" + std::to_string(port.port) + "/hello";
  (void)error_of(request);
  EXPECT_TRUE(proxy.heard.starts_with("CONNECT 127.0.0.1:")) << proxy.heard;
  EXPECT_EQ(proxy.heard.find("key"), std::string::npos);
}

TEST_P(EitherClient, SpeaksNothingButHttp) {
  for (const char* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://x/", "", "://"}) {
    EXPECT_EQ(error_of({.url = url}).kind, Kind::kBadRequest) << url;
  }
  EXPECT_EQ(error_of({.url = "http://127.0.0.1/", .body = "of a GET"}).kind, Kind::kBadRequest);
}

TEST_P(EitherClient, FollowsNoRedirect) {
  ScriptedServer other("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad");
  ScriptedServer server("HTTP/1.1 302 Found\r\nLocation: " + other.url() +
                        "\r\nContent-Length: 0\r\n\r\n");
  const ClientResponse response = response_to({.url = server.url()});
  EXPECT_EQ(response.status, 302);
  EXPECT_EQ(response.headers.find("Location"), other.url());
  EXPECT_EQ(other.heard, "");
}

TEST_P(EitherClient, AnAnswerThatEndsEarlyOrIsNoneIsBroken) {
  for (const char* says : {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "",
                           "SSH-2.0-OpenSSH_9.2\r\n"}) {
    ScriptedServer server(says);
    EXPECT_EQ(error_of({.url = server.url()}).kind, Kind::kBroken) << says;
  }
}

TEST_P(EitherClient, ForgetsTheHeadOfContinue) {
  ScriptedServer server(
      "HTTP/1.1 100 Continue\r\nX: 1\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
  const ClientResponse response = response_to({.url = server.url()});
  EXPECT_EQ(response.status, 201);
  EXPECT_FALSE(response.headers.find("X"));
  EXPECT_EQ(response.body, "ok");
}

TEST_P(EitherClient, ACertificateThatNobodyVouchesForIsRefused) {
  char directory[] = "/tmp/test-sbx-tls-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::string key = std::string(directory) + "/key.pem";
  const std::string certificate = std::string(directory) + "/certificate.pem";
  sbx::test::Process make({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                           "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj",
                           "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                           key, "-out", certificate});
  ASSERT_EQ(make.finish().exit_code, 0);
  std::uint16_t port = Listener::tcp("127.0.0.1", 0)->port();
  sbx::test::Process server({"openssl", "s_server", "-accept", "127.0.0.1:" + std::to_string(port),
                             "-key", key, "-cert", certificate, "-www", "-quiet"});
  while (!sbx::test::RawClient::to_port(port).connected()) std::this_thread::yield();
  const std::string url = "https://127.0.0.1:" + std::to_string(port) + "/";
  EXPECT_EQ(error_of({.url = url}).kind, Kind::kTls);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

TEST(AsyncClient, ManyAtATimeGetTheirOwnAnswers) {
  RunningServer server;
  async::Loop loop;
  AsyncClient client(loop);
  int right = 0;
  async::TaskGroup group(loop);
  for (int i = 0; i < 64; ++i) {
    group.spawn([](AsyncClient& by, ClientRequest request, int& count) -> async::Task<void> {
      const std::string expected = request.body;
      const ClientResult result = co_await by.perform(std::move(request));
      const auto* response = std::get_if<ClientResponse>(&result);
      if (response != nullptr && response->body == expected) ++count;
    }(client, to(server, Method::kPost, "/echo", "number " + std::to_string(i)), right));
  }
  run_on(loop, [](async::TaskGroup& tasks) -> async::Task<void> {
    (void)co_await tasks.join(async::test::soon());
  }(group));
  EXPECT_EQ(right, 64);
}

TEST(AsyncClient, CancelledBeforehandItSendsNothing) {
  RunningServer server;
  async::Loop loop;
  AsyncClient client(loop);
  ClientResult result;
  run_on(loop, [](AsyncClient& by, ClientRequest request, ClientResult& into) -> async::Task<void> {
    async::Cancellation cancellation;
    cancellation.cancel();
    into = co_await by.perform(std::move(request), &cancellation);
  }(client, to(server, Method::kGet, "/hello"), result));
  ASSERT_TRUE(std::holds_alternative<ClientError>(result));
  EXPECT_EQ(std::get<ClientError>(result).kind, Kind::kCancelled);
  EXPECT_EQ(server.counters().accepted, 0U);
}

TEST(AsyncClient, CancelledOrDestroyedItClosesTheConnection) {
  RunningServer server;
  async::Loop loop;
  AsyncClient client(loop);
  async::Cancellation cancellation;
  ClientResult result;
  auto dropped = std::make_unique<async::TaskGroup>(loop);
  async::TaskGroup group(loop);
  const auto wait_for = [&](async::TaskGroup& in, ClientResult& out) {
    in.spawn([](AsyncClient& by, ClientRequest request, async::Cancellation& until,
                ClientResult& into) -> async::Task<void> {
      into = co_await by.perform(std::move(request), &until);
    }(client, to(server, Method::kGet, "/wait"), cancellation, out));
  };
  ClientResult never;
  wait_for(group, result);
  wait_for(*dropped, never);
  std::thread watcher([&] {
    EXPECT_TRUE(server.wait_until([&] { return server.seen.waiting == 2; }));
    loop.post([&] { dropped.reset(); });
    EXPECT_TRUE(server.wait_until([&] { return server.seen.left == 1; }));
    loop.post([&] { cancellation.cancel(); });
    EXPECT_TRUE(server.wait_until([&] { return server.seen.left == 2; }));
  });
  run_on(loop, [](async::TaskGroup& tasks) -> async::Task<void> {
    (void)co_await tasks.join(async::test::soon());
  }(group));
  watcher.join();
  ASSERT_TRUE(std::holds_alternative<ClientError>(result));
  EXPECT_EQ(std::get<ClientError>(result).kind, Kind::kCancelled);
}

}  // namespace
}  // namespace sbx::http
