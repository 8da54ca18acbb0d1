// A ledger whose place goes: what is granted, and what is settled all the same.
#include "agentd/service/watched_ledger.h"

#include <gtest/gtest.h>

#include "tests/unit/agentd/service/service_fixture.h"

namespace agentd::service {
namespace {

class WatchedLedgerTest : public RequestServiceTest {
 public:
  WatchedLedger watched_{ledger_.ledger, [this]() -> sbx::Result<void> {
                           if (place_is_there_) return {};
                           return sbx::host_lacks("stat", 0, "gone", "back");
                         }};
};

TEST_F(WatchedLedgerTest, GrantsNothingWhileThePlaceIsGoneAndSettlesWhatItGranted) {
  struct Body {
    static Task<void> run(WatchedLedgerTest& t) {
      ledger::Reservation first{.id = "first", .lines = {{"a", 10, 100}}};
      ledger::Reservation second{.id = "second", .lines = {{"a", 20, 100}}};
      const auto granted = co_await t.watched_.reserve(std::move(first), std::nullopt);
      EXPECT_TRUE(granted && granted->granted);
      t.place_is_there_ = false;
      const auto refused = co_await t.watched_.reserve(std::move(second), std::nullopt);
      EXPECT_FALSE(refused);
      t.watched_.settle("first", {{"a", 7}});
      const bool written = co_await t.watched_.make_up();
      EXPECT_TRUE(written);
      EXPECT_EQ(t.watched_.unwritten(), 0U);
    }
  };
  run(Body::run(*this));
  const auto balance = ledger_.book.balance("a");
  ASSERT_TRUE(balance);
  EXPECT_EQ(balance->settled, 7);
  EXPECT_EQ(balance->reserved, 0);
}

}  // namespace
}  // namespace agentd::service
