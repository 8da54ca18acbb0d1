// Sessions with much in them: their trees go through a small daemon, and hold up nobody.
#include <sys/socket.h>

#include <cstring>
#include <filesystem>

#include "tests/daemon/session_fixture.h"

namespace sbx::test {
namespace {

class LargeSessions : public SessionTest {};
SBX_AS_BOTH_CALLERS(LargeSessions);

// Of bytes in their order; enough against mistakes.
class Digest {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    }
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

// Sends `size` bytes, of which no two blocks are alike.
std::uint64_t send_blocks(RawClient& client, std::uint64_t size) {
  Digest digest;
  std::string block(1 << 20, '\0');
  for (std::uint64_t sent = 0; sent < size; sent += block.size()) {
    for (std::size_t i = 0; i < block.size(); i += 8) {
      const std::uint64_t word = (sent + i + 1) * 0x9e3779b97f4a7c15;
      std::memcpy(block.data() + i, &word, sizeof word);
    }
    digest.add(block);
    EXPECT_TRUE(client.send(block));
  }
  return digest.value();
}

// Reads the body behind a head, without keeping it.
std::uint64_t receive_blocks(const RawClient& client, std::uint64_t size) {
  Digest digest;
  std::string buffer(1 << 20, '\0');
  std::string head;
  std::uint64_t got = 0;
  while (got < size) {
    const ssize_t part = ::recv(client.fd(), buffer.data(), buffer.size(), 0);
    if (part <= 0) {
      ADD_FAILURE() << "cut after " << got;
      break;
    }
    std::string_view bytes(buffer.data(), static_cast<std::size_t>(part));
    if (head.find("\r\n\r\n") == std::string::npos) {
      head += bytes;
      const std::size_t end = head.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      bytes.remove_prefix(bytes.size() - (head.size() - end - 4));
    }
    digest.add(bytes);
    got += bytes.size();
  }
  return digest.value();
}

// A run's limits are its client's choice, and filling goes at their pace.
TEST_P(LargeSessions, ThatAreFilledSlowlyKeepNoOtherFromItsRun) {
  constexpr int kSlow = 5;
  Json slow = shell("true");
  slow["limits"] = {{"cpus", 0.01}, {"memory", "64M"}};
  // First all that takes long, so that the first run is not over when the last one begins.
  std::vector<std::string> ids;
  for (int i = 0; i < kSlow; ++i) {
    ids.push_back(create_id());
    ASSERT_EQ(put(ids.back(), "big", std::string(16 << 20, 'x')).status, 201);
  }
  std::vector<RawClient> clients;
  for (const std::string& id : ids) {
    clients.push_back(connect());
    ASSERT_TRUE(clients.back().send(http_request("POST", target(id, "/run"), slow.dump())));
  }
  ASSERT_TRUE(wait_for_metric("sbxd_running", kSlow));
  const std::string id = create_id();
  EXPECT_EQ(run_in(id, "true")["status"], "ok");
  EXPECT_EQ(metric("sbxd_running"), kSlow) << "control: the others are still being filled";
  for (RawClient& client : clients) {
    EXPECT_EQ(Json::parse(client.reply().body, nullptr, false)["status"], "ok");
  }
}

TEST_P(LargeSessions, MoveAGigabyteInAndOutThroughASmallDaemon) {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 30;
  if (std::filesystem::space(state_dir()).available < 3 * kSize) {
    GTEST_SKIP() << "less than 3 GiB free below " << state_dir();
  }
  const std::string id = create_id({{"limits", {{"work", "1G"}}}});
  RawClient up = connect();
  ASSERT_TRUE(up.send("PUT " + target(id, "/files/big") + " HTTP/1.1\r\nHost: sbx\r\n" +
                      "Content-Length: " + std::to_string(kSize) + "\r\n\r\n"));
  const std::uint64_t sent = send_blocks(up, kSize);
  EXPECT_EQ(up.reply().status, 201);
  RawClient down = connect();
  ASSERT_TRUE(down.send(http_request("GET", target(id, "/files/big"))));
  EXPECT_EQ(receive_blocks(down, kSize), sent);
  EXPECT_EQ(code_of(put(id, "more", "x")), "quota_exceeded");
  EXPECT_LT(peak_bytes(), std::uint64_t{64} << 20);
  EXPECT_EQ(ask("DELETE", target(id)).status, 200);
}

TEST_P(LargeSessions, CarryLargeTreesThroughRunsInASmallDaemon) {
  const std::string id = create_id({{"limits", {{"work", "160M"}}}});
  Json request = shell("for i in 1 2 3 4 5; do head -c 30M /dev/urandom > f$i; done; md5sum f*");
  request["limits"] = {{"memory", "256M"}, {"cpus", 1}};
  const RawReply first = ask_run(id, request);
  ASSERT_EQ(first.status, 200) << first.body;
  request["argv"][2] = "md5sum f*";
  const RawReply second = ask_run(id, request);
  ASSERT_EQ(second.status, 200) << second.body;
  EXPECT_EQ(Json::parse(first.body)["stdout"], Json::parse(second.body)["stdout"]);
  EXPECT_EQ(Json::parse(second.body)["workspace"]["size"], 150 << 20);
  EXPECT_LT(peak_bytes(), std::uint64_t{64} << 20);
}

}  // namespace
}  // namespace sbx::test
