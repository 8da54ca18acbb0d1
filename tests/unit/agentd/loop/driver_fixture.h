// A driver with a provider and a sandbox of the test's, and a real ledger.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "agentd/loop/driver.h"
#include "tests/agent/support/fakes.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::loop {

using providers::Completion;
using providers::CompletionRequest;
using providers::CompletionResult;
using providers::ProviderError;
using providers::Trouble;
using record::Record;
using sandbox::RunOutcome;
using sandbox::RunRequest;
using sandbox::SandboxFailure;
using std::chrono::milliseconds;
using test::failed_run;
using test::FakeProvider;
using test::FakeSandbox;
using test::ok_run;
using test::reply_with;

inline constexpr char kDriversSecret[] = "tok-of-agentd-73510982";
inline constexpr char kGood[] = R"({"type":"text","data":"hi"})";

class DriverTest : public ::testing::Test {
 protected:
  DriverTest() {
    begin("r1");
    submission_.request_sha256 = std::string(64, 'a');
    sandbox_.info_ = test::known(test::shipped_info());
  }

  // Another request of the same test.
  void begin(const std::string& id) {
    record_ = {};
    record_.id = id;
    record_.text = "do it";
    record_.language = "python";
    record_.queued = false;
    states_.clear();
    provider_.asked.clear();
    sandbox_.ran.clear();
  }

  // Answers of provider and sandbox by number of the call, from 1.
  void run(std::function<CompletionResult(int)> model, std::function<RunOutcome(int)> sandbox) {
    model_ = std::move(model);
    box_ = std::move(sandbox);
    auto made = prompts::Composer::make({});
    ASSERT_TRUE(made);
    composer_ = *std::move(made);
    const Services services{.provider = provider_,
                            .sandbox = sandbox_,
                            .ledger = ledger_.ledger,
                            .composer = *composer_,
                            .redactor = redactor_,
                            .now = [this] { return now_; }};
    Driver driver(services, submission_, record_, stop_,
                  [this](const Record& record) { on_change(record); });
    sbx::async::test::run_on(loop_, driver.run());
    sbx::async::test::run_on(loop_, ledger_.written());
    expect_nothing_reserved();
  }

  void on_change(const Record& record) {
    states_ += (states_.empty() ? "" : " ") + std::string(state_name(record));
    if (on_state_) on_state_(record);
  }

  // Whatever happened, everything is settled or released, and the ledger agrees with the record.
  void expect_nothing_reserved() {
    const auto balance = [this](const char* unit) {
      return *ledger_.book.balance("request/" + record_.id + "/" + unit);
    };
    EXPECT_EQ(balance("tokens").reserved, 0);
    EXPECT_EQ(balance("cost").reserved, 0);
    EXPECT_EQ(balance("sandbox_ms").reserved, 0);
    EXPECT_EQ(balance("tokens").settled, record_.spent.tokens);
    EXPECT_EQ(balance("cost").settled, record_.spent.cost.value);
    EXPECT_EQ(balance("sandbox_ms").settled, record_.spent.sandbox.count());
  }

  static CompletionResult good(int /*call*/) { return reply_with("print(1)"); }
  static RunOutcome passes(int /*run*/) { return ok_run(kGood); }
  static RunOutcome fails(int /*run*/) { return failed_run("KeyError: 'x'"); }

  sbx::async::Loop loop_;
  test::TestLedger ledger_{loop_};
  sbx::async::Cancellation stop_;
  std::function<CompletionResult(int)> model_;
  std::function<RunOutcome(int)> box_;
  FakeProvider provider_{[this](const CompletionRequest&) {
    return model_(static_cast<int>(provider_.asked.size()));
  }};
  FakeSandbox sandbox_{
      [this](const RunRequest&) { return box_(static_cast<int>(sandbox_.ran.size())); }};
  std::optional<prompts::Composer> composer_;
  redact::Redactor redactor_{{redact::Secret(kDriversSecret)}};
  Submission submission_;
  Record record_;
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
  std::string states_;
  std::function<void(const Record&)> on_state_;
};

}  // namespace agentd::loop
