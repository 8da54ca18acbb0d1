#include "agentd/loop/ending_text.h"

#include <gtest/gtest.h>

#include "agentd/record/record.h"

namespace agentd::loop {
namespace {

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

}  // namespace
}  // namespace agentd::loop
