// The repair loop with a provider and a sandbox of the test's, and a real ledger.
#include "agentd/loop/driver.h"

#include <gtest/gtest.h>

#include "runtime/base/utf8.h"
#include "tests/agent/support/fakes.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::loop {
namespace {

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

constexpr char kDriversSecret[] = "tok-of-agentd-73510982";
constexpr char kGood[] = R"({"type":"text","data":"hi"})";

class DriverTest : public ::testing::Test {
 protected:
  DriverTest() {
    begin("r1");
    submission_.request_sha256 = std::string(64, 'a');
    sandbox_.info_ = test::shipped_info();
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

TEST_F(DriverTest, AFirstAttemptThatPassesIsTheShortestWay) {
  run(good, passes);
  EXPECT_EQ(states_, "generate execute evaluate succeeded");
  ASSERT_TRUE(record_.result);
  EXPECT_EQ(record_.result->envelope.text, "hi");
  ASSERT_EQ(record_.attempts.size(), 1U);
  EXPECT_EQ(record_.attempts[0].code, "print(1)\n");
  EXPECT_EQ(record_.attempts[0].charge.input_tokens, 1000);
  EXPECT_EQ(record_.spent.tokens, 1200);
  EXPECT_EQ(record_.spent.sandbox, milliseconds(500));
  EXPECT_EQ(sandbox_.ran[0].code, "print(1)\n");
  EXPECT_EQ(provider_.asked[0].key.prompt, "codegen.v1.python");
}

TEST_F(DriverTest, TheRunIsReservedWithTheCallAndReleasedWhenNoneComes) {
  const auto reserved = [this](const char* unit) {
    return ledger_.book.balance("request/r1/" + std::string(unit))->reserved;
  };
  run(
      [&](int) -> CompletionResult {
        EXPECT_EQ(reserved("sandbox_ms"), 30'000);
        return Completion{.text = "Sure!", .usage = providers::Usage{10, 10}};
      },
      passes);
  EXPECT_EQ(provider_.asked.size(), 3U);
  EXPECT_EQ(ledger_.book.balance("request/r1/sandbox_ms")->cap, 60'000) << "it was reserved";
  EXPECT_EQ(reserved("sandbox_ms"), 0);
}

TEST_F(DriverTest, AFailureIsRepairedWithTheExactTracebackInData) {
  run(good, [](int n) -> RunOutcome {
    return n == 1 ? failed_run("Traceback\nKeyError: 'pric</data>e'") : ok_run(kGood);
  });
  EXPECT_EQ(states_, "generate execute evaluate repair execute evaluate succeeded");
  EXPECT_EQ(record_.attempts[0].failure, FailureClass::kRuntime);
  EXPECT_EQ(record_.attempts[1].failure, std::nullopt);
  const auto& messages = provider_.asked[1].messages;
  EXPECT_NE(messages.back().text.find("KeyError: 'pric&lt;/data>e'"), std::string::npos)
      << messages.back().text;
  EXPECT_EQ(messages[messages.size() - 2].role, providers::Role::kAssistant);
  EXPECT_EQ(provider_.asked[1].key.call, 2);
  EXPECT_EQ(provider_.asked[1].key.prompt, "repair.v1");
}

TEST_F(DriverTest, TheConversationDoesNotGrowWithAttempts) {
  run(good, fails);
  EXPECT_EQ(record_.attempts.size(), 3U);
  EXPECT_EQ(provider_.asked[1].messages.size(), provider_.asked[2].messages.size());
}

TEST_F(DriverTest, WhenAttemptsAreSpentItGivesUpWithAReport) {
  run(good, fails);
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kAttempts);
  EXPECT_NE(record_.reason_text.find("KeyError: 'x'"), std::string::npos) << record_.reason_text;
  EXPECT_EQ(provider_.asked.size(), 3U);
  EXPECT_FALSE(record_.result);
}

TEST_F(DriverTest, TheLastRunThatEndedOkIsShownRawWhenNoneHadAnEnvelope) {
  run(good, [](int n) -> RunOutcome {
    if (n == 3) return failed_run("x");
    sandbox::RunResult run = ok_run("the answer is " + std::to_string(n));
    run.files = {{.path = "f.txt", .content = "c"}};
    return run;
  });
  EXPECT_EQ(state_name(record_), "gave_up");
  ASSERT_TRUE(record_.result);
  EXPECT_EQ(record_.result->kind, record::Result::Kind::kRaw);
  EXPECT_EQ(record_.result->text, "the answer is 2");
  EXPECT_FALSE(record_.result->banner.empty());
  EXPECT_EQ(record_.artifacts.at(0).name, "f.txt");
}

TEST_F(DriverTest, TimeoutAndSecurityAreNotRepaired) {
  for (const char* status : {"timeout", "security"}) {
    begin(status);
    run(good, [status](int) -> RunOutcome {
      sandbox::RunResult run = failed_run("");
      run.status = status;
      run.notes = {{"wall", "Ended at 30 s.", "kernel"}};
      return run;
    });
    EXPECT_EQ(record_.attempts.size(), 1U);
    EXPECT_EQ(state_name(record_), "gave_up");
    EXPECT_NE(record_.reason_text.find("Ended at 30 s."), std::string::npos);
  }
}

TEST_F(DriverTest, ASecondResourceFailureEndsIt) {
  run(good, [](int) -> RunOutcome {
    sandbox::RunResult run = failed_run("");
    run.status = "oom";
    return run;
  });
  EXPECT_EQ(record_.attempts.size(), 2U);
  EXPECT_EQ(record_.state.ending.reason, Reason::kResource);
}

TEST_F(DriverTest, AReplyWithoutAProgramCostsAnAttemptAndIsToldSo) {
  run(
      [](int n) -> CompletionResult {
        if (n == 1) return Completion{.text = "Sure!", .usage = providers::Usage{10, 10}};
        if (n == 2) {
          Completion cut = reply_with("x");
          cut.text = "```python\nprint(";
          cut.finish = providers::Finish::kLength;
          return cut;
        }
        return reply_with("print(1)");
      },
      passes);
  EXPECT_EQ(states_, "generate repair repair execute evaluate succeeded");
  EXPECT_EQ(record_.attempts[0].error->code, "no_code_block");
  EXPECT_EQ(record_.attempts[1].error->code, "cut_reply");
  EXPECT_EQ(record_.attempts[1].failure, FailureClass::kProvider);
  EXPECT_NE(provider_.asked[2].messages.back().text.find("shorter program"), std::string::npos);
}

TEST_F(DriverTest, AConnectionThatBrokeIsNotTheModelsFaultAndEndsIt) {
  run(
      [](int) -> CompletionResult {
        Completion cut = reply_with("x");
        cut.text = "```python\nprint(";
        cut.finish = providers::Finish::kCut;
        return cut;
      },
      passes);
  EXPECT_EQ(states_, "generate give_up gave_up");
  EXPECT_EQ(record_.state.ending.reason, Reason::kProvider);
  EXPECT_EQ(record_.attempts.at(0).error->code, "broken");
  EXPECT_NE(record_.reason_text.find("connection"), std::string::npos) << record_.reason_text;
  begin("r2");
  run(
      [](int) -> CompletionResult {
        Completion whole = reply_with("print(1)");
        whole.finish = providers::Finish::kCut;
        return whole;
      },
      passes);
  EXPECT_EQ(state_name(record_), "succeeded") << "the program was there";
}

TEST_F(DriverTest, AProgramWithAKeyOfAgentdsOwnIsNotRun) {
  run(
      [](int n) {
        return reply_with(n == 1 ? "print('" + std::string(kDriversSecret) + "')" : "print(1)");
      },
      passes);
  EXPECT_EQ(state_name(record_), "succeeded");
  ASSERT_EQ(sandbox_.ran.size(), 1U);
  EXPECT_EQ(sandbox_.ran[0].code.find(kDriversSecret), std::string::npos);
  EXPECT_EQ(record_.attempts.at(0).error->code, "own_secret");
  EXPECT_TRUE(record_.attempts.at(0).code.empty());
}

TEST_F(DriverTest, WhatIsShownRawSaysWhereBytesAreMissing) {
  run(good, [](int) -> RunOutcome {
    sandbox::RunResult cut = ok_run(std::string(9000, 'a') + std::string(9000, 'b'));
    cut.out_dropped = 500;
    cut.out_cut = 9000;
    return cut;
  });
  const std::string& text = record_.result->text;
  const std::size_t mark = text.find("bytes were not kept");
  ASSERT_NE(mark, std::string::npos);
  EXPECT_EQ(text.substr(0, mark).find('b'), text.substr(0, mark).rfind("b"));
  EXPECT_TRUE(text.starts_with("aaa"));
  EXPECT_TRUE(text.ends_with("bbb"));
}

TEST_F(DriverTest, AReplyThatTheProviderWithholdsIsARefusalAndNotRepaired) {
  run(
      [](int) -> CompletionResult {
        Completion withheld = reply_with("print(1)");
        withheld.finish = providers::Finish::kFiltered;
        withheld.finish_reason = "content_filter";
        return withheld;
      },
      passes);
  EXPECT_EQ(states_, "generate give_up gave_up");
  EXPECT_EQ(record_.state.ending.reason, Reason::kProvider);
  EXPECT_NE(record_.reason_text.find("content_filter"), std::string::npos) << record_.reason_text;
  EXPECT_EQ(record_.attempts.at(0).failure, FailureClass::kProvider);
  EXPECT_EQ(record_.spent.tokens, 1200) << "it cost all the same";
}

TEST_F(DriverTest, CancelledBeforeTheModelIsAskedNothingIsBilled) {
  // The ledger's answer comes in a later turn of the loop: the client has cancelled by then.
  on_state_ = [this](const Record& record) {
    if (state_name(record) == "generate") loop_.post([this] { stop_.cancel(); });
  };
  run(good, passes);
  EXPECT_EQ(state_name(record_), "cancelled");
  EXPECT_TRUE(provider_.asked.empty());
  EXPECT_EQ(record_.spent.tokens, 0);
}

TEST_F(DriverTest, TheSandboxIsTriedOnceMoreWithoutAModelCall) {
  run(good, [](int n) -> RunOutcome {
    if (n == 1) return SandboxFailure{.kind = SandboxFailure::Kind::kLost, .detail = "gone"};
    return ok_run(kGood);
  });
  EXPECT_EQ(states_, "generate execute execute evaluate succeeded");
  EXPECT_EQ(provider_.asked.size(), 1U);
  EXPECT_EQ(record_.attempts[0].failure, std::nullopt);
  EXPECT_EQ(record_.attempts[0].error, std::nullopt);
}

TEST_F(DriverTest, ASandboxThatFailsTwiceIsAnErrorOfOurs) {
  run(good, [](int) -> RunOutcome {
    return SandboxFailure{.kind = SandboxFailure::Kind::kFailed, .detail = "no cgroup", .fix = "x"};
  });
  EXPECT_EQ(state_name(record_), "failed");
  EXPECT_EQ(sandbox_.ran.size(), 2U);
  EXPECT_NE(record_.reason_text.find("no cgroup. Fix: x"), std::string::npos)
      << record_.reason_text;
  EXPECT_EQ(record_.spent.sandbox, milliseconds(0));
}

TEST_F(DriverTest, WithoutASandboxNoModelIsAsked) {
  sandbox_.info_ =
      SandboxFailure{.kind = SandboxFailure::Kind::kUnreachable, .detail = "no socket"};
  run(good, passes);
  EXPECT_EQ(state_name(record_), "failed");
  EXPECT_TRUE(provider_.asked.empty());
  EXPECT_EQ(record_.spent.tokens, 0);
}

TEST_F(DriverTest, AModelThatCannotBeReachedEndsItWithoutACharge) {
  run([](int) -> CompletionResult { return ProviderError{.detail = "refused the key (401)"}; },
      passes);
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_EQ(record_.state.ending.reason, Reason::kProvider);
  EXPECT_NE(record_.reason_text.find("refused the key"), std::string::npos);
  EXPECT_EQ(record_.spent.tokens, 0);
}

TEST_F(DriverTest, ACallThatMayHaveCostSomethingIsBilledAsReserved) {
  provider_.info_.prices = {1, 1};
  run(
      [](int) -> CompletionResult {
        return ProviderError{.trouble = Trouble::kTimeout, .may_have_cost = true};
      },
      passes);
  EXPECT_GT(record_.spent.tokens, 2048);
  EXPECT_GT(record_.spent.cost.value, 2048);
  EXPECT_TRUE(record_.spent.estimated);
  // The attempts add up to it.
  ASSERT_EQ(record_.attempts.size(), 1U);
  const record::Attempt& call = record_.attempts[0];
  EXPECT_EQ(call.n, 1);
  EXPECT_EQ(call.failure, FailureClass::kProvider);
  EXPECT_EQ(call.error->code, "timeout");
  EXPECT_TRUE(call.charge.estimated);
  EXPECT_EQ(call.charge.input_tokens + call.charge.output_tokens, record_.spent.tokens);
  EXPECT_EQ(call.charge.cost, record_.spent.cost);
  EXPECT_EQ(record_.state.attempt, 0) << "it was no reply";
}

TEST_F(DriverTest, ACallThatWasCancelledInTheMiddleIsAmongTheAttemptsWithItsCharge) {
  run(
      [this](int call) -> CompletionResult {
        if (call == 1) return reply_with("print(1)");
        stop_.cancel();
        return ProviderError{.trouble = Trouble::kCancelled, .may_have_cost = true};
      },
      fails);
  EXPECT_EQ(state_name(record_), "cancelled");
  ASSERT_EQ(record_.attempts.size(), 2U);
  EXPECT_EQ(record_.attempts[1].n, 2);
  EXPECT_EQ(record_.attempts[1].error->code, "cancelled");
  std::int64_t tokens = 0;
  for (const record::Attempt& attempt : record_.attempts) {
    tokens += attempt.charge.input_tokens + attempt.charge.output_tokens;
  }
  EXPECT_EQ(tokens, record_.spent.tokens);
}

TEST_F(DriverTest, ALongLastLineIsReadWholeAndTheRecordKeepsTheEndsOfIt) {
  const std::string accents = [] {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += "\xC3\xA9";
    return text;
  }();
  const std::string printed = R"({"type":"text","data":")" + accents + "\"}\n";
  run(good, [&](int) -> RunOutcome { return ok_run(printed); });
  ASSERT_EQ(state_name(record_), "succeeded");
  EXPECT_EQ(record_.result->envelope.text, accents);
  const record::Run& kept = *record_.attempts[0].run;
  EXPECT_LE(kept.out.size(), 64U << 10);
  EXPECT_EQ(kept.out.size() + kept.out_dropped, printed.size());
  EXPECT_TRUE(printed.starts_with(kept.out.substr(0, 32'000)));
  EXPECT_TRUE(printed.ends_with(kept.out.substr(kept.out.size() - 32'000)));
  std::string ignored;
  EXPECT_TRUE(sbx::append_replacing(ignored, kept.out)) << "cut between characters";
}

TEST_F(DriverTest, UsageThatCannotBeIsBilledAsReservedAndFlagged) {
  provider_.info_.prices = {0.1, 1};
  int requests = 0;
  for (const auto& [usage, flagged] : std::vector<std::pair<std::optional<providers::Usage>, bool>>{
           {std::nullopt, false},
           {providers::Usage{0, 0}, true},
           {providers::Usage{1000, 0}, true},
           {providers::Usage{-5, 10}, true},
           {providers::Usage{1'000'000, 10}, true},
           {providers::Usage{10, 4000}, true},  // dearer than what was reserved, but no more
           {providers::Usage{INT64_MAX / 2, INT64_MAX / 2}, true}}) {
    begin("r" + std::to_string(++requests));
    Completion reply = reply_with("print(1)");
    reply.usage = usage;
    run([reply](int) -> CompletionResult { return reply; }, passes);
    const auto& charge = record_.attempts.at(0).charge;
    EXPECT_TRUE(charge.estimated);
    EXPECT_EQ(charge.flagged, flagged);
    EXPECT_GT(charge.input_tokens + charge.output_tokens, 2048);
  }
}

TEST_F(DriverTest, CancelledBetweenStepsItEndsAtOnce) {
  on_state_ = [this](const Record& record) {
    if (state_name(record) == "execute") stop_.cancel();
  };
  run(good, passes);
  EXPECT_EQ(states_, "generate execute give_up cancelled");
  EXPECT_TRUE(sandbox_.ran.empty());
}

// The shipped ceilings are calibrated: for each of them there is a request that reaches it first.

TEST_F(DriverTest, ShippedCeilingOfAttemptsIsReachedByAProgramThatIsNeverRight) {
  run(good, fails);
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kAttempts);
}

TEST_F(DriverTest, ShippedCeilingOfTokensIsReachedByLongReplies) {
  provider_.info_.prices = {0.15, 0.60};
  run(
      [](int) -> CompletionResult {
        // A long request, and programs of two thousand tokens.
        return reply_with(std::string(9000, 'x'), {9000, 2000});
      },
      fails);
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kTokens) << record_.reason_text;
  EXPECT_LT(record_.attempts.size(), 3U);
}

TEST_F(DriverTest, ShippedCeilingOfCostIsReachedWithADearModel) {
  provider_.info_.prices = {3, 15};
  run([](int) -> CompletionResult { return reply_with("print(1)", {1500, 800}); }, fails);
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kCost) << record_.reason_text;
  EXPECT_LE(record_.spent.cost, record_.budget.cost);
}

TEST_F(DriverTest, ShippedCeilingOfSandboxSecondsIsReachedByProgramsThatFailLate) {
  run(good, [](int) -> RunOutcome { return failed_run("KeyError", 29.8); });
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kSandboxSeconds) << record_.reason_text;
  EXPECT_EQ(sandbox_.ran.size(), 2U);
}

TEST_F(DriverTest, ShippedCeilingOfWallSecondsIsReachedByASlowModel) {
  run(
      [this](int) -> CompletionResult {
        now_ += std::chrono::seconds(91);
        return reply_with("print(1)");
      },
      fails);
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kWallSeconds) << record_.reason_text;
  EXPECT_EQ(record_.attempts.size(), 2U);
}

TEST_F(DriverTest, AModelThatIsNotReachedInTheRequestsTimeIsItsCeilingAndCostsNothing) {
  run(
      [this](int) -> CompletionResult {
        now_ += record_.budget.wall;
        return ProviderError{.trouble = Trouble::kUnreachable};
      },
      passes);
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kWallSeconds);
  EXPECT_EQ(record_.spent.tokens, 0);
  EXPECT_TRUE(record_.attempts.empty());
}

TEST_F(DriverTest, ARunGetsNoMoreTimeThanIsLeftAndItsEndIsTheBudgets) {
  record_.budget.sandbox = milliseconds(5000);
  run(good, [](int) -> RunOutcome {
    sandbox::RunResult run = failed_run("");
    run.status = "timeout";
    run.duration_seconds = 5.01;
    return run;
  });
  EXPECT_EQ(sandbox_.ran[0].wall, milliseconds(5000));
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kSandboxSeconds);
  EXPECT_EQ(record_.spent.sandbox, milliseconds(5000));
}

TEST_F(DriverTest, AReplyGetsNoMoreTokensThanAreLeft) {
  record_.budget.tokens = 4500;
  run(good, passes);
  const auto& asked = provider_.asked.at(0);
  EXPECT_LT(asked.max_tokens, 2048);
  EXPECT_LE(static_cast<std::int64_t>(prompts::token_bound(asked.messages, {})) + asked.max_tokens,
            4500);
}

TEST_F(DriverTest, ABudgetThatHoldsNoCallIsAGiveUpWithoutOne) {
  record_.budget.tokens = 100;
  run(good, passes);
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_TRUE(provider_.asked.empty());
}

}  // namespace
}  // namespace agentd::loop
