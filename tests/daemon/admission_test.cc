// How sbxd says no for want of room, and to whom it gives turns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/daemon/fixture.h"

namespace sbx::test {
namespace {

using ::testing::HasSubstr;

const std::string kSleep = R"({"argv":["/bin/sleep","1000"]})";
const std::string kTrue = R"({"argv":["/bin/true"]})";

class DaemonAdmission : public DaemonTest {
 protected:
  // A run that is under way until the client closes.
  RawClient occupy(double running) {
    RawClient client = connect();
    EXPECT_TRUE(client.send(http_request("POST", "/v1/run", kSleep)));
    EXPECT_TRUE(wait_for_metric("sbxd_running", running));
    return client;
  }
};
SBX_AS_BOTH_CALLERS(DaemonAdmission);

TEST_P(DaemonAdmission, WithoutRoomTheAnswerIs429WithTheBudget) {
  start("max_running = 1\nmax_queued = 0\nmax_queued_per_peer = 0\n");
  const RawClient first = occupy(1);
  const RawReply reply = ask("POST", "/v1/run", kTrue);
  EXPECT_EQ(reply.status, 429);
  const Json problem = problem_of(reply);
  EXPECT_EQ(problem["code"], "too_many_requests");
  EXPECT_EQ(problem["budget"], "max_running");
  EXPECT_THAT(problem["detail"].get<std::string>(), HasSubstr("max_running"));
  EXPECT_GE(std::stoi(reply.field("Retry-After")), 1);
  EXPECT_EQ(metric("sbxd_refused_total{budget=\"max_running\"}"), 1);
  EXPECT_EQ(ask("GET", "/healthz").status, 200) << "the API goes on";
}

TEST_P(DaemonAdmission, MemoryLimitsAreReservedAgainstTheBudget) {
  start("memory_budget = \"300M\"\nmax_queued = 0\nmax_queued_per_peer = 0\n");
  const RawClient first = occupy(1);
  EXPECT_EQ(metric("sbxd_memory_reserved_bytes"), 256 * 1024 * 1024);
  const RawReply reply = ask("POST", "/v1/run", kTrue);
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(problem_of(reply)["budget"], "memory_budget");
  const Json small = {{"argv", {"/bin/true"}}, {"limits", {{"memory", "32M"}}}};
  EXPECT_EQ(run(small)["status"], "ok") << "what fits runs beside it";
  const Json large = {{"argv", {"/bin/true"}}, {"limits", {{"memory", "301M"}}}};
  EXPECT_EQ(problem_of(ask("POST", "/v1/run", large.dump()))["code"], "above_ceiling");
}

TEST_P(DaemonAdmission, AQueuedRequestGetsItsTurn) {
  start("max_running = 1\n");
  RawClient first = occupy(1);
  RawClient second = connect();
  ASSERT_TRUE(second.send(http_request("POST", "/v1/run", kTrue)));
  ASSERT_TRUE(wait_for_metric("sbxd_queued", 1));
  first.close();
  EXPECT_EQ(second.reply().status, 200);
  EXPECT_EQ(metric("sbxd_queued"), 0);
}

TEST_P(DaemonAdmission, AQueuedRequestDoesNotWaitForEver) {
  start("max_running = 1\nqueue_seconds = 1\n");
  const RawClient first = occupy(1);
  const RawReply reply = ask("POST", "/v1/run", kTrue);
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(problem_of(reply)["budget"], "max_running");
}

TEST_P(DaemonAdmission, AQueuedClientThatLeavesIsForgotten) {
  start("max_running = 1\n");
  const RawClient first = occupy(1);
  RawClient second = connect();
  ASSERT_TRUE(second.send(http_request("POST", "/v1/run", kTrue)));
  ASSERT_TRUE(wait_for_metric("sbxd_queued", 1));
  second.close();
  EXPECT_TRUE(wait_for_metric("sbxd_queued", 0));
  EXPECT_EQ(metric("sbxd_running"), 1);
}

TEST_P(DaemonAdmission, OnePeersQueueDoesNotFillAnothers) {
  start("max_running = 1\nmax_queued = 4\nmax_queued_per_peer = 2\n");
  const RawClient first = occupy(1);
  std::vector<RawClient> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(connect());
    ASSERT_TRUE(waiting.back().send(http_request("POST", "/v1/run", kTrue)));
    ASSERT_TRUE(wait_for_metric("sbxd_queued", i + 1));
  }
  EXPECT_EQ(problem_of(ask("POST", "/v1/run", kTrue))["budget"], "max_queued_per_peer");
}

// As JSON each NUL is six bytes, and none of them is read.
TEST_P(DaemonAdmission, AnswersThatNobodyReadsAreBounded) {
  start("answer_budget = \"8M\"\nqueue_seconds = 3\n");
  EXPECT_EQ(run({{"argv", {"/bin/true"}}})["status"], "ok");
  const double before = metric("process_resident_memory_bytes");
  const Json flood = {
      {"argv", {"/bin/sh", "-c", "head -c 2000000 /dev/zero; head -c 2000000 /dev/zero >&2"}},
      {"limits", {{"memory", "32M"}, {"stdout_bytes", "1M"}, {"stderr_bytes", "1M"}}}};
  std::vector<RawClient> unread;
  for (int i = 0; i < 12; ++i) {
    unread.push_back(connect());
    ASSERT_TRUE(unread.back().send(http_request("POST", "/v1/run", flood.dump())));
  }
  // One user has half: two answers of 2 MiB each. The others wait for one of them to be read.
  const RawReply refused = ask("POST", "/v1/run", kTrue);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(problem_of(refused)["budget"], "answer_budget");
  EXPECT_GE(std::stoi(refused.field("Retry-After")), 1);
  EXPECT_EQ(metric("sbxd_running"), 0);
  EXPECT_LT(metric("sbxd_answer_bytes"), 4.3e6);
  EXPECT_LT(metric("process_resident_memory_bytes") - before, 24e6);
  int answered = 0;
  for (RawClient& client : unread) {
    const RawReply reply = client.reply();
    if (reply.status == 200) {
      ++answered;
      EXPECT_GT(reply.body.size(), 12'000'000U);
      EXPECT_FALSE(reply.cut);
    } else {
      EXPECT_EQ(reply.status, 429);
    }
  }
  EXPECT_EQ(answered, 2);
  EXPECT_EQ(run({{"argv", {"/bin/true"}}})["status"], "ok") << "there is room again";
  EXPECT_TRUE(wait_for_metric("sbxd_answer_bytes", 0));
}

// The pace alone would let them wait for 20 s.
TEST_P(DaemonAdmission, AnswersThatNobodyReadsGiveWayToTheSameUsersRuns) {
  start("answer_budget = \"4M\"\n");
  const Json flood = {{"argv", {"/bin/sh", "-c", "head -c 1000000 /dev/zero"}},
                      {"limits", {{"stdout_bytes", "1M"}}}};
  RawClient unread = connect();
  ASSERT_TRUE(unread.send(http_request("POST", "/v1/run", flood.dump())));
  ASSERT_TRUE(wait_for_metric("sbxd_runs_total{status=\"ok\",language=\"none\"}", 1));
  Json large = flood;
  large["limits"]["stderr_bytes"] = "1M";
  const auto asked = std::chrono::steady_clock::now();
  RawClient waiting = connect();
  ASSERT_TRUE(waiting.send(http_request("POST", "/v1/run", large.dump())));
  ASSERT_TRUE(wait_for_metric("sbxd_queued", 1)) << "control: it does wait";
  EXPECT_EQ(waiting.reply().status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(15)) << log();
  EXPECT_TRUE(unread.reply().cut);
  EXPECT_EQ(metric("sbxd_refused_total{budget=\"answer_budget\"}"), -1);
}

// An answer without files holds no memory of the budget: its end would help nobody.
TEST_P(DaemonAdmission, AnswersThatNobodyReadsStayWhereOnlyMemoryIsLacking) {
  start("memory_budget = \"64M\"\n");
  RawClient unread = connect();
  const Json flood = {{"argv", {"/bin/sh", "-c", "head -c 1000000 /dev/zero"}},
                      {"limits", {{"stdout_bytes", "1M"}, {"memory", "32M"}}}};
  ASSERT_TRUE(unread.send(http_request("POST", "/v1/run", flood.dump())));
  ASSERT_TRUE(wait_for_metric("sbxd_runs_total{status=\"ok\",language=\"none\"}", 1));
  // Longer than an unread answer is safe for.
  RawClient busy = connect();
  const Json sleeps = {{"argv", {"/bin/sleep", "8"}}, {"limits", {{"memory", "64M"}}}};
  ASSERT_TRUE(busy.send(http_request("POST", "/v1/run", sleeps.dump())));
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  RawClient waiting = connect();
  const Json all = {{"argv", {"/bin/true"}}, {"limits", {{"memory", "64M"}}}};
  ASSERT_TRUE(waiting.send(http_request("POST", "/v1/run", all.dump())));
  ASSERT_TRUE(wait_for_metric("sbxd_queued", 1)) << "control: it does wait";
  EXPECT_EQ(busy.reply().status, 200);
  EXPECT_EQ(waiting.reply().status, 200);
  const RawReply late = unread.reply();
  EXPECT_EQ(late.status, 200);
  EXPECT_FALSE(late.cut) << log();
}

TEST_P(DaemonAdmission, BodiesThatAreNeverFinishedAreBounded) {
  start();
  std::vector<RawClient> unfinished;
  const std::string part(4U << 20, ' ');
  for (int i = 0; i < 24; ++i) {
    unfinished.push_back(connect());
    // Whoever is refused may find the connection closed.
    if (unfinished.back().send(
            "POST /v1/run HTTP/1.1\r\nHost: sbx\r\nContent-Length: 16777216\r\n\r\n")) {
      (void)unfinished.back().send(part);
    }
    EXPECT_LT(metric("process_resident_memory_bytes"), 64.0 * 1024 * 1024);
  }
  EXPECT_LE(metric("sbxd_body_bytes"), 20.0 * 1024 * 1024) << "one user's half";
  const RawReply refused = unfinished.back().reply();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(problem_of(refused)["code"], "too_many_buffered_bodies");
  unfinished.clear();
  EXPECT_TRUE(wait_for_metric("sbxd_body_bytes", 0));
  EXPECT_EQ(run({{"argv", {"/bin/true"}}})["status"], "ok");
}

}  // namespace
}  // namespace sbx::test
