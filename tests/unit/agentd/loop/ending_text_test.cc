#include "agentd/loop/ending_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agentd/record/record.h"
#include "agentd/record/record_json.h"

namespace agentd::loop {
namespace {

TEST(Reason, AtACeilingHasTheClassOfTheLastFailure) {
  record::Record record;
  record.state.phase = Phase::kDone;
  record.state.ending = {.reason = Reason::kCeiling, .ceiling = Ceiling::kTokens};
  const auto said = [&record] {
    const auto json = record::record_json(record, redact::Redactor());
    return nlohmann::json::parse(json.text())["reason"]["class"];
  };
  EXPECT_TRUE(said().is_null()) << "nothing had failed";
  record.attempts.resize(3);
  record.attempts[0].failure = FailureClass::kEnvelope;
  record.attempts[1].failure = FailureClass::kRuntime;
  EXPECT_EQ(said(), "runtime") << "the last attempt was never judged";
  record.state.ending = {.reason = Reason::kCancelled};
  EXPECT_TRUE(said().is_null());
}

TEST(EndingText, NamesABudgetOfMoneyToItsLastDigit) {
  record::Record record;
  record.state.ending = {.reason = Reason::kCeiling, .ceiling = Ceiling::kCost};
  const auto said = [&](std::int64_t micro_dollars) {
    record.budget.cost = {micro_dollars};
    return ending_text(record, "");
  };
  EXPECT_EQ(said(1), "the budget of $0.000001 leaves no room for another model call");
  EXPECT_EQ(said(20'000), "the budget of $0.02 leaves no room for another model call");
  EXPECT_EQ(said(10'000'000), "the budget of $10 leaves no room for another model call");
  EXPECT_EQ(said(0), "the budget of $0 leaves no room for another model call");
}

TEST(EndingText, SaysWhatIsLeftOfACeilingThatIsNotUsedUp) {
  record::Record record;
  record.state.ending = {.reason = Reason::kCeiling, .ceiling = Ceiling::kSandboxSeconds};
  EXPECT_EQ(ending_text(record, ""), "the budget of 60 seconds in the sandbox is used up");
  EXPECT_EQ(ending_text(record, "0.9 s are left, and a run needs at least 1 s"),
            "of the budget of 60 seconds in the sandbox 0.9 s are left, and a run needs at least "
            "1 s");
  record.state.ending.ceiling = Ceiling::kWallSeconds;
  EXPECT_EQ(ending_text(record, ""), "the request took longer than its 180 seconds");
  EXPECT_EQ(ending_text(record, "0.5 s are left, and a run needs at least 1 s"),
            "of the request's 180 seconds 0.5 s are left, and a run needs at least 1 s");
}

}  // namespace
}  // namespace agentd::loop
