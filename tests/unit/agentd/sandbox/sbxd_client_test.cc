// The client of sbxd, against an sbxd that the test plays.
#include "agentd/sandbox/sbxd_client.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "http/async/task_group.h"
#include "http/listener.h"
#include "tests/support/process.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::sandbox {
namespace {

using sbx::async::Task;
using std::chrono::milliseconds;
using Json = nlohmann::json;

constexpr char kResult[] = R"({"id":"ab","status":"ok","exit_code":0,"signal":null,
  "duration_seconds":1,"stdout":"","stdout_dropped":0,"stderr":"","stderr_dropped":0,"files":[],
  "refused":[],"limits_hit":[],"error":null,"notes":[]})";

// Answers /v1/info with `info`, and runs with a result, or, where it is to hold, not at all. One
// that hangs answers nothing.
class PlayedSbxd {
 public:
  PlayedSbxd() : path_(directory_.path() + "/s.sock") {
    auto listener = sbx::http::Listener::unix_socket({.path = path_, .mode = 0600, .group = {}});
    EXPECT_TRUE(listener);
    listener_.emplace(*std::move(listener));
    thread_ = std::thread([this] { serve(); });
  }
  ~PlayedSbxd() {
    ending_ = true;
    (void)::shutdown(listener_->fd(), SHUT_RD);  // wakes it
    thread_.join();
  }
  [[nodiscard]] const std::string& path() const { return path_; }

  Json info = Json::parse(R"({"version":"1","languages":[],
    "limits":{"wall_seconds":30,"cpus":1,"memory":1,"pids":1,"input":1,"output":1,"work":1,"tmp":1,
      "stdout_bytes":65536,"network":"none"},"ceilings":{},"layers":[]})");
  std::atomic<bool> hold = false;
  std::atomic<bool> hang = false;
  std::atomic<bool> hang_in_run = false;
  std::atomic<int> late_infos = 0;  // so many are not answered, then the others
  std::atomic<int> infos = 0;       // that were asked for
  std::string run_heard;            // the body of the last run; read it when the run is over

 private:
  void serve() {
    while (!ending_) {
      sbx::UniqueFd peer(::accept4(listener_->fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (peer && !exchange(peer.get())) held_.push_back(std::move(peer));
    }
  }
  // One for each connection, which is then closed. False: it is held without an answer.
  bool exchange(int peer) {
    if (hang) return false;
    std::string heard;
    char byte = 0;
    while (!heard.ends_with("\r\n\r\n") && ::recv(peer, &byte, 1, 0) == 1) heard += byte;
    const bool run = heard.starts_with("POST /v1/run ");
    const std::size_t length = heard.find("Content-Length: ");
    if (length != std::string::npos) {
      std::string body(std::stoul(heard.substr(length + 16)), '\0');
      if (::recv(peer, body.data(), body.size(), MSG_WAITALL) < 0) return true;
      run_heard = body;
    }
    if (run && hang_in_run) hang = true;
    if (run && (hold || hang)) return false;
    if (!run && late_infos > 0) {
      --late_infos;
      return false;
    }
    infos += run ? 0 : 1;
    const std::string body = run ? kResult : info.dump();
    const std::string answer =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
    (void)::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
    return true;
  }

  sbx::test::TemporaryDirectory directory_;
  std::string path_;
  std::optional<sbx::http::Listener> listener_;
  std::vector<sbx::UniqueFd> held_;  // the thread's
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

class SbxdClientTest : public ::testing::Test {
 public:  // for the coroutines that are the tests
  RunOutcome run(milliseconds left = milliseconds(60'000)) {
    std::optional<RunOutcome> outcome;
    sbx::async::test::run_on(
        loop_,
        [](SbxdClient& client, milliseconds time, std::optional<RunOutcome>& out) -> Task<void> {
          RunRequest request;
          request.language = "python";
          request.deadline = sbx::async::after(time);
          out = co_await client.run(std::move(request), nullptr);
        }(*client_, left, outcome));
    return *outcome;
  }
  InfoOutcome info() {
    std::optional<InfoOutcome> outcome;
    sbx::async::test::run_on(loop_,
                             [](SbxdClient& client, std::optional<InfoOutcome>& out) -> Task<void> {
                               out = co_await client.info(nullptr);
                             }(*client_, outcome));
    return *outcome;
  }
  void learn() {
    const InfoOutcome outcome = info();
    ASSERT_TRUE(std::holds_alternative<SharedInfo>(outcome))
        << std::get<SandboxFailure>(outcome).detail;
  }
  void make(SbxdOptions options) {
    options.socket = [path = sbxd_->path()] { return path; };
    client_.emplace(loop_, pool_, http_, std::move(options));
  }
  // The limits that the last run asked for.
  Json limits() { return Json::parse(sbxd_->run_heard)["limits"]; }

  std::optional<PlayedSbxd> sbxd_{std::in_place};
  sbx::async::Loop loop_;
  sbx::async::WorkPool pool_{loop_, 1};
  sbx::http::AsyncClient http_{loop_};
  std::optional<SbxdClient> client_;
};

std::string kind_of(const auto& outcome) {
  const auto* failure = std::get_if<SandboxFailure>(&outcome);
  return failure == nullptr ? "ok" : std::string(to_string(failure->kind));
}

TEST_F(SbxdClientTest, ARunKeepsOfStdoutWhatAnEnvelopeCanNeedWithinTheCeiling) {
  make({.info_age = milliseconds(0)});
  ASSERT_TRUE(std::holds_alternative<RunResult>(run()));
  EXPECT_FALSE(limits().contains("stdout_bytes")) << "nothing is known of sbxd as yet";
  learn();
  ASSERT_TRUE(std::holds_alternative<RunResult>(run()));
  EXPECT_EQ(limits()["stdout_bytes"], 2U << 20U);
  sbxd_->info["ceilings"]["stdout_bytes"] = 1U << 20U;
  learn();
  ASSERT_TRUE(std::holds_alternative<RunResult>(run()));
  EXPECT_EQ(limits()["stdout_bytes"], 1U << 20U);
}

TEST_F(SbxdClientTest, ARunThatIsHeldBackIsGivenUpSoonAfterTheDeadline) {
  make({.behind_deadline = milliseconds(200)});
  sbxd_->hold = true;
  const auto begin = std::chrono::steady_clock::now();
  const RunOutcome outcome = run(milliseconds(100));
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(std::holds_alternative<SandboxFailure>(outcome));
  EXPECT_EQ(std::get<SandboxFailure>(outcome).kind, SandboxFailure::Kind::kLost);
  EXPECT_GE(took, milliseconds(100));
  EXPECT_LT(took, milliseconds(25'000)) << "its wall limit alone is 30 s";
}

TEST_F(SbxdClientTest, WhatItSaidOfItselfIsForgottenWithACallThatHasNoAnswer) {
  make({.heard_age = milliseconds(60'000)});
  learn();
  learn();
  EXPECT_EQ(sbxd_->infos, 1) << "it was heard just now";
  sbxd_.reset();
  EXPECT_EQ(kind_of(run()), "unreachable");
  EXPECT_EQ(kind_of(info()), "unreachable");
}

// An sbxd that is down, starts again, and is then at another path.
class RestartedSbxdTest : public SbxdClientTest {
 public:
  void make(SbxdOptions options) {
    options.socket = [this] { return path_; };
    options.on_doubt = [this] { ++doubts_; };
    options.restart_time = milliseconds(60'000);
    options.restart_look = milliseconds(1);
    client_.emplace(loop_, pool_, http_, std::move(options));
    sbxd_.reset();
  }
  // A run within `left`. It starts again when it has been missed once more, and `down` is over.
  RunOutcome run_over_a_restart(milliseconds left, milliseconds down = {}, bool hold = false) {
    std::optional<RunOutcome> outcome;
    sbx::async::test::run_on(loop_, both(*this, left, start_again(*this, down, hold), outcome));
    return *outcome;
  }

  std::string path_ = sbxd_->path();
  int doubts_ = 0;

 private:
  static Task<void> start_again(RestartedSbxdTest& t, milliseconds down, bool hold) {
    const auto earliest = sbx::async::after(down);
    for (const int before = t.doubts_; t.doubts_ == before;) (void)co_await t.loop_.next_turn();
    (void)co_await t.loop_.sleep_until(earliest);
    t.sbxd_.emplace();
    t.sbxd_->hold = hold;
    t.path_ = t.sbxd_->path();
  }
  static Task<void> both(RestartedSbxdTest& t, milliseconds left, Task<void> start_again,
                         std::optional<RunOutcome>& out) {
    sbx::async::TaskGroup tasks(t.loop_);
    tasks.spawn(std::move(start_again));
    (void)co_await t.loop_.next_turn();
    RunRequest request;
    request.deadline = sbx::async::after(left);
    out = co_await t.client_->run(std::move(request), nullptr);
  }
};

TEST_F(RestartedSbxdTest, OneThatIsDownHasAMomentToComeBackBeforeARunIsGivenUp) {
  make({});
  EXPECT_EQ(kind_of(run()), "unreachable");
  EXPECT_EQ(doubts_, 1);
  EXPECT_EQ(kind_of(run(milliseconds(50))), "unreachable") << "within the request's time";
  EXPECT_EQ(kind_of(run_over_a_restart(milliseconds(60'000))), "ok");
}

TEST_F(RestartedSbxdTest, WaitingForOneToComeBackIsOfTheRequestsTime) {
  constexpr milliseconds kLeft(2'000);
  constexpr milliseconds kDown(1'500);
  make({.behind_deadline = milliseconds(100)});
  EXPECT_EQ(kind_of(run()), "unreachable");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(kind_of(run_over_a_restart(kLeft, kDown, true)), "ok");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLeft + kDown);
}

TEST_F(SbxdClientTest, OneThatWasNotHeardForAWhileIsAskedAgain) {
  make({.heard_age = milliseconds(0)});
  learn();
  learn();
  EXPECT_EQ(sbxd_->infos, 2);
  sbxd_.reset();
  EXPECT_EQ(kind_of(info()), "unreachable");
}

TEST_F(SbxdClientTest, OneThatHangsDuringARunIsNotWaitedFor) {
  make({.answer_time = milliseconds(200), .look_every = milliseconds(20)});
  sbxd_->hang_in_run = true;
  const auto begin = std::chrono::steady_clock::now();
  const RunOutcome outcome = run();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(25'000));
  ASSERT_EQ(kind_of(outcome), "silent");
  EXPECT_FALSE(std::get<SandboxFailure>(outcome).fix.empty());
  EXPECT_FALSE(std::get<SandboxFailure>(outcome).not_sent);
  sbxd_->run_heard.clear();
  const RunOutcome next = run();
  ASSERT_EQ(kind_of(next), "silent");
  EXPECT_TRUE(std::get<SandboxFailure>(next).not_sent);
  EXPECT_EQ(sbxd_->run_heard, "") << "no run is sent to one that is known to hang";
  EXPECT_EQ(kind_of(info()), "silent");
}

TEST_F(SbxdClientTest, OneThatHangsAtTheDeadlineIsToldFromARunThatIsHeldBack) {
  make({.answer_time = milliseconds(200), .behind_deadline = milliseconds(50)});
  sbxd_->hang_in_run = true;
  EXPECT_EQ(kind_of(run(milliseconds(50))), "silent");
}

TEST_F(SbxdClientTest, ALongRunOfOneThatAnswersIsWaitedFor) {
  make({.look_every = milliseconds(10), .behind_deadline = milliseconds(200)});
  sbxd_->hold = true;
  EXPECT_EQ(kind_of(run(milliseconds(1000))), "lost");
  EXPECT_GT(sbxd_->infos, 1);
}

TEST_F(SbxdClientTest, OneLateAnswerEndsNoRun) {
  make({.answer_time = milliseconds(1000),
        .look_every = milliseconds(10),
        .behind_deadline = milliseconds(500)});
  sbxd_->hold = true;
  sbxd_->late_infos = 1;
  EXPECT_EQ(kind_of(run(milliseconds(2000))), "lost");
  EXPECT_EQ(sbxd_->late_infos, 0);
  EXPECT_GT(sbxd_->infos, 1);
}

}  // namespace
}  // namespace agentd::sandbox
