// A local client that means harm: each of its requests gets a typed answer or a closed connection,
// others are served meanwhile, and the daemon is as large afterwards as before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/base/base64.h"
#include "tests/daemon/fixture.h"

namespace sbx::test {
namespace {

constexpr double kMostGrowth = 12e6;  // bytes; pools of malloc, not what was sent
constexpr std::size_t kBodyLimit = 16U << 20;

// Runs of somebody else's, one after the other, while it lives; at least one.
class Bystander {
 public:
  explicit Bystander(const DaemonGround& ground) : thread_([this, &ground] { work(ground); }) {}
  ~Bystander() { finish(); }
  void finish() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] int served() const { return served_; }
  [[nodiscard]] int failed() const { return failed_; }

 private:
  void work(const DaemonGround& ground) {
    do {
      const RawReply reply = ground.ask("POST", "/v1/run", R"({"argv":["/bin/echo","here"]})");
      const bool good = reply.status == 200 && reply.body.find("here\\n") != std::string::npos;
      ++(good ? served_ : failed_);
    } while (!over_);
  }
  std::atomic<bool> over_{false};
  std::atomic<int> served_{0};
  std::atomic<int> failed_{0};
  std::thread thread_;
};

class DaemonHostile : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    if (IsSkipped()) return;
    start();
    (void)run({{"argv", {"/bin/true"}}});
    before_ = metric("process_resident_memory_bytes");
    bystander_.emplace(ground());
  }
  void TearDown() override {
    if (bystander_) {
      bystander_->finish();
      EXPECT_GT(bystander_->served(), 0);
      EXPECT_EQ(bystander_->failed(), 0) << log();
      EXPECT_LT(metric("process_resident_memory_bytes") - before_, kMostGrowth);
      EXPECT_EQ(metric("sbxd_running"), 0);
    }
    DaemonTest::TearDown();
  }
  void expect_refused(const std::string& body, int status, const std::string& code) {
    const RawReply reply = ask("POST", "/v1/run", body);
    EXPECT_EQ(reply.status, status) << body.substr(0, 100);
    EXPECT_EQ(problem_of(reply)["code"], code) << body.substr(0, 100);
    EXPECT_LT(reply.body.size(), 2000U) << "what was sent is not sent back";
  }

 private:
  double before_ = 0;
  std::optional<Bystander> bystander_;
};
SBX_AS_BOTH_CALLERS(DaemonHostile);

TEST_P(DaemonHostile, BodiesOverTheLimitAreRefusedUnread) {
  for (int i = 0; i < 5; ++i) {
    RawClient client = connect();
    ASSERT_TRUE(
        client.send("POST /v1/run HTTP/1.1\r\nHost: sbx\r\nContent-Length: 100000000\r\n\r\n"));
    EXPECT_EQ(client.reply().status, 413);
  }
  RawClient client = connect();
  ASSERT_TRUE(
      client.send("POST /v1/run HTTP/1.1\r\nHost: sbx\r\nTransfer-Encoding: chunked\r\n\r\n"));
  const std::string chunk = "100000\r\n" + std::string(1U << 20, ' ') + "\r\n";
  for (int i = 0; i < 20 && client.send(chunk); ++i) {
  }
  EXPECT_EQ(client.reply().status, 413);
}

TEST_P(DaemonHostile, BodiesAtTheLimitOfEveryWrongKindAreTyped) {
  const std::size_t room = kBodyLimit - 64;
  expect_refused(std::string(room, '['), 413, "body_too_large");
  expect_refused("{\"argv\":[" + std::string(room, '{'), 400, "invalid_json");
  std::string many = "{\"args\":[0";
  while (many.size() + 4 < room) many += ",0";
  expect_refused(many + "]}", 413, "body_too_large");
  expect_refused("{\"" + std::string(room - 8, 'n') + "\":1}", 413, "body_too_large");
  expect_refused("{\"profile\":\"" + std::string(room - 16, 'p') + "\",\"argv\":[\"ls\"]}", 422,
                 "unknown_profile");
  expect_refused(std::string(room, ' '), 400, "invalid_json");
  expect_refused(std::string(room, '9'), 400, "invalid_json");
  expect_refused("\"" + std::string(room - 2, '\xff') + "\"", 400, "invalid_json");
  expect_refused(R"({"argv":["ls"],"files":[{"name":"a","content_base64":")" +
                     std::string(room - 80, '!') + "\"}]}",
                 422, "invalid_value");
}

TEST_P(DaemonHostile, ManyNamesAndVariablesAreBounded) {
  std::string env = "{\"argv\":[\"ls\"],\"env\":{\"A0\":\"\"";
  for (int i = 1; i < 20'000; ++i) env += ",\"A" + std::to_string(i) + "\":\"\"";
  const RawReply reply = ask("POST", "/v1/run", env + "}}");
  EXPECT_EQ(reply.status, 422);
  std::string files = "{\"argv\":[\"ls\"],\"files\":[{\"name\":\"f\",\"content_base64\":\"\"}";
  for (int i = 1; i < 9'000; ++i) {
    files += ",{\"name\":\"f" + std::to_string(i) + "\",\"content_base64\":\"\"}";
  }
  EXPECT_EQ(ask("POST", "/v1/run", files + "]}").status, 422) << "over input_inodes";
}

TEST_P(DaemonHostile, RequestsThatAreLeftHalfSentHoldUpNobody) {
  std::vector<RawClient> idle;
  const std::string whole = http_request("POST", "/v1/run", R"({"argv":["/bin/true"]})");
  for (std::size_t i = 0; i < 100; ++i) {
    idle.push_back(connect());
    ASSERT_TRUE(idle.back().send(whole.substr(0, 1 + i * (whole.size() - 2) / 100)));
  }
  EXPECT_EQ(run({{"argv", {"/bin/true"}}})["status"], "ok");
}

TEST_P(DaemonHostile, PipelinedRequestsAreAnsweredInOrder) {
  RawClient client = connect();
  std::string all;
  for (int i = 0; i < 10; ++i) {
    all += http_request("POST", "/v1/run",
                        Json({{"argv", {"/bin/echo", "number " + std::to_string(i)}}}).dump());
  }
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 10; ++i) {
    const RawReply reply = client.reply();
    ASSERT_EQ(reply.status, 200);
    EXPECT_EQ(Json::parse(reply.body)["stdout"], "number " + std::to_string(i) + "\n");
  }
}

TEST_P(DaemonHostile, ClientsThatLeaveInTheMiddleLeaveNothingRunning) {
  const std::string flood = python("while True: print('x' * 1000)").dump();
  for (int i = 0; i < 10; ++i) {
    RawClient client = connect();
    ASSERT_TRUE(client.send(http_request("POST", "/v1/run?stream=1", flood)));
    char byte = 0;
    ASSERT_EQ(::read(client.fd(), &byte, 1), 1);
  }
  EXPECT_TRUE(wait_for_metric("sbxd_runs_total{status=\"cancelled\",language=\"python\"}", 10));
}

TEST_P(DaemonHostile, WhatIsNoHttpIsRefused) {
  for (const std::string& bytes :
       {std::string("\r\n\r\n\r\n"), std::string("GET\r\n\r\n"), std::string(1000, '\0'),
        std::string("GET /healthz HTTP/9.9\r\n\r\n"), std::string("\x16\x03\x01\x02\x00\x01", 6),
        "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n",
        std::string(
            "POST /v1/run HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        std::string("POST /v1/run HTTP/1.1\r\nContent-Length: -1\r\n\r\n")}) {
    RawClient client = connect();
    (void)client.send(bytes);
    client.shut_down_writing();
    const RawReply reply = client.reply();
    EXPECT_TRUE(reply.status == 0 || (reply.status >= 400 && reply.status < 600)) << reply.head;
  }
}

}  // namespace
}  // namespace sbx::test
