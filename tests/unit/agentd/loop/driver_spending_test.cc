// What the repair loop spends: reservations, charges, and the ceilings that end it.
#include "tests/unit/agentd/loop/driver_fixture.h"

namespace agentd::loop {
namespace {

TEST_F(DriverTest, TheModelIsToldTheTimeThatARunWouldHave) {
  struct Case {
    int sandbox;
    int wall;
    const char* told;
  };
  sandbox::SandboxInfo info = *std::get<sandbox::SharedInfo>(sandbox_.info_);
  info.wall_seconds = 600;
  sandbox_.info_ = std::make_shared<const sandbox::SandboxInfo>(std::move(info));
  int number = 0;
  for (const Case& one : {Case{60, 180, "Limits: 30 seconds"}, Case{7, 180, "Limits: 7 seconds"},
                          Case{60, 12, "Limits: 12 seconds"}}) {
    begin("told" + std::to_string(++number));
    record_.budget.sandbox = std::chrono::seconds(one.sandbox);
    record_.budget.wall = std::chrono::seconds(one.wall);
    run(good, passes);
    const std::string& prompt = provider_.asked.at(0).messages.at(0).text;
    EXPECT_NE(prompt.find(one.told), std::string::npos) << prompt;
  }
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
  EXPECT_EQ(record_.attempts[1].outcome, record::Outcome::kCancelled);
  std::int64_t tokens = 0;
  for (const record::Attempt& attempt : record_.attempts) {
    tokens += attempt.charge.input_tokens + attempt.charge.output_tokens;
  }
  EXPECT_EQ(tokens, record_.spent.tokens);
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

TEST_F(DriverTest, WhatCannotBeRunIsNotPaidForAndTheReasonSaysWhatIsLeft) {
  record_.budget.sandbox = milliseconds(900);
  run(good, passes);
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_TRUE(provider_.asked.empty());
  EXPECT_EQ(record_.reason_text,
            "of the budget of 0.9 seconds in the sandbox 0.9 s are left, and a run needs at least "
            "1 s");
  begin("r2");
  run(
      [this](int) -> CompletionResult {
        now_ += record_.budget.wall - milliseconds(500);
        return reply_with("print(1)");
      },
      passes);
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kWallSeconds);
  EXPECT_EQ(record_.reason_text,
            "of the request's 180 seconds 0.5 s are left, and a run needs at least 1 s");
  ASSERT_EQ(record_.attempts.size(), 1U);
  EXPECT_EQ(record_.attempts[0].outcome, record::Outcome::kNotRun);
  EXPECT_FALSE(record_.attempts[0].failure);
  EXPECT_TRUE(sandbox_.ran.empty());
}

// The disk is full from the middle of the model call on.
TEST_F(DriverTest, NoRunComesOfACallWhoseChargeCannotBeWritten) {
  auto other = store::Database::open({.path = ledger_.directory.path() + "/agentd.db"});
  ASSERT_TRUE(other);
  on_state_ = [&](const Record& record) {
    if (!has_ended(record)) return;
    EXPECT_GT(ledger_.ledger.unwritten(), 0U);
    EXPECT_TRUE(other->execute("ALTER TABLE away RENAME TO accounts"));  // there is room again
  };
  run(
      [&](int) -> CompletionResult {
        EXPECT_TRUE(other->execute("ALTER TABLE accounts RENAME TO away"));
        return reply_with("print(1)");
      },
      passes);
  EXPECT_EQ(states_, "generate execute give_up failed");
  EXPECT_EQ(record_.state.ending.reason, Reason::kLedger);
  EXPECT_TRUE(sandbox_.ran.empty());
  EXPECT_GT(record_.spent.tokens, 0) << "and in the ledger, as the fixture has seen";
  EXPECT_EQ(record_.attempts.at(0).outcome, record::Outcome::kNotRun);
}

TEST_F(DriverTest, ABudgetThatHoldsNoCallIsAGiveUpWithoutOne) {
  record_.budget.tokens = 100;
  run(good, passes);
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_TRUE(provider_.asked.empty());
}

}  // namespace
}  // namespace agentd::loop
