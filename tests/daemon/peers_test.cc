// Who may connect, and what belongs to whom. As root, which alone can be several users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/daemon/fixture.h"

namespace sbx::test {
namespace {

constexpr uid_t kAlice = 60461;
constexpr uid_t kBob = 60462;

class DaemonPeers : public DaemonTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as several users";
    DaemonTest::SetUp();
  }
  // Opens the socket to everybody, as an administrator's group would to its members.
  void open_socket() { ASSERT_EQ(::chmod(socket().c_str(), 0666), 0); }
  // A connection of that user: the kernel notes who connects.
  [[nodiscard]] RawClient connect_as(uid_t uid) const {
    EXPECT_EQ(::seteuid(uid), 0);
    RawClient client = connect();
    EXPECT_EQ(::seteuid(0), 0);
    return client;
  }
  [[nodiscard]] RawReply ask_as(uid_t uid, std::string_view method, std::string_view target,
                                std::string_view body = {}) const {
    RawClient client = connect_as(uid);
    return client.ask(http_request(method, target, body));
  }
  // A run of that user's, its id, and the connection that keeps it.
  [[nodiscard]] std::pair<RawClient, std::string> sleep_as(uid_t uid) const {
    RawClient client = connect_as(uid);
    EXPECT_TRUE(client.send(http_request("POST", "/v1/run", R"({"argv":["/bin/sleep","1000"]})")));
    std::string head;
    while (head.find("\r\n\r\n") == std::string::npos) {
      char byte = 0;
      if (::read(client.fd(), &byte, 1) != 1) break;
      head += byte;
    }
    const std::size_t at = head.find("Sbx-Run-Id: ");
    EXPECT_NE(at, std::string::npos) << head;
    return {std::move(client), at == std::string::npos ? "" : head.substr(at + 12, 16)};
  }
};
INSTANTIATE_TEST_SUITE_P(Callers, DaemonPeers, ::testing::Values(Caller::kSelf), caller_name);

TEST_P(DaemonPeers, TheSocketIsTheServicesAndItsGroups) {
  start();
  struct stat info{};
  ASSERT_EQ(::stat(socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0660U);
  EXPECT_FALSE(connect_as(kAlice).connected()) << "not of the group";
}

TEST_P(DaemonPeers, ARunOfSomebodyElseDoesNotExist) {
  start();
  open_socket();
  const auto [client, id] = sleep_as(kAlice);
  EXPECT_EQ(ask_as(kBob, "DELETE", "/v1/runs/" + id).status, 404);
  EXPECT_EQ(metric("sbxd_running"), 1);
  EXPECT_EQ(ask_as(kAlice, "DELETE", "/v1/runs/" + id).status, 204);
}

TEST_P(DaemonPeers, RootMayCancelAnybodysRun) {
  start();
  open_socket();
  const auto [client, id] = sleep_as(kAlice);
  EXPECT_EQ(ask("DELETE", "/v1/runs/" + id).status, 204);
}

TEST_P(DaemonPeers, OnlyThoseWhoAreListedMayConnect) {
  start("allow_uids = [0, " + std::to_string(kAlice) + "]\n");
  open_socket();
  EXPECT_EQ(ask_as(kAlice, "GET", "/healthz").status, 200);
  const RawReply reply = ask_as(kBob, "GET", "/healthz");
  EXPECT_EQ(reply.status, 403);
  EXPECT_EQ(problem_of(reply)["code"], "peer_refused");
}

TEST_P(DaemonPeers, TurnsGoRoundTheUsers) {
  start("max_running = 1\n");
  open_socket();
  auto [running, id] = sleep_as(kAlice);
  // Alice queues three, Bob one after them: his comes second. Her others would never end.
  std::vector<RawClient> waiting;
  const auto queue = [&](uid_t uid, const std::string& argv) {
    waiting.push_back(connect_as(uid));
    ASSERT_TRUE(waiting.back().send(http_request("POST", "/v1/run", "{\"argv\":[" + argv + "]}")));
    ASSERT_TRUE(wait_for_metric("sbxd_queued", static_cast<double>(waiting.size())));
  };
  queue(kAlice, R"("/bin/true")");
  for (int i = 0; i < 2; ++i) queue(kAlice, R"("/bin/sleep","1000")");
  queue(kBob, R"("/bin/true")");
  running.close();
  EXPECT_EQ(waiting[0].reply().status, 200);
  EXPECT_EQ(waiting[3].reply().status, 200);
  EXPECT_EQ(metric("sbxd_queued") + metric("sbxd_running"), 2) << "two of Alice's came after Bob's";
}

TEST_P(DaemonPeers, TheAuditFileSaysWhoItWas) {
  start();
  open_socket();
  EXPECT_EQ(ask_as(kAlice, "POST", "/v1/run", R"({"argv":["/bin/true"]})").status, 200);
  const Json line = Json::parse(read_text(audit_file()));
  EXPECT_EQ(line["uid"], kAlice);
  EXPECT_EQ(line["pid"], ::getpid());
}

}  // namespace
}  // namespace sbx::test
