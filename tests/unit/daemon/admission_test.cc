#include "runtime/daemon/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sbx::daemon {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

class AdmissionTest : public ::testing::Test {
 protected:
  using TicketPtr = std::unique_ptr<Admission::Ticket>;

  void limit(AdmissionLimits limits) {
    admission_ = std::make_unique<Admission>(limits, [this] { return now_; });
  }
  // A ticket that was taken in, running or not.
  TicketPtr enter(uid_t peer, std::uint64_t memory = 1, const std::string& name = {},
                  std::uint64_t answer = 0) {
    auto entered =
        admission_->enter(peer, {memory, answer}, [this, name] { turns_.push_back(name); });
    EXPECT_TRUE(std::holds_alternative<TicketPtr>(entered)) << name;
    if (auto* ticket = std::get_if<TicketPtr>(&entered)) return std::move(*ticket);
    return nullptr;
  }
  Refusal refused(uid_t peer, std::uint64_t memory = 1, std::uint64_t answer = 0) {
    auto entered = admission_->enter(peer, {memory, answer}, [] {});
    EXPECT_TRUE(std::holds_alternative<Refusal>(entered));
    const auto* refusal = std::get_if<Refusal>(&entered);
    return refusal != nullptr ? *refusal : Refusal{};
  }

  Admission::Clock::time_point now_{};
  std::unique_ptr<Admission> admission_;
  std::vector<std::string> turns_;  // of those that had to wait
};

TEST_F(AdmissionTest, RunsAtOnceWhatThereIsRoomFor) {
  limit({.max_running = 2, .max_queued = 9, .max_queued_per_peer = 9, .memory_budget = 100});
  const TicketPtr a = enter(1, 60);
  const TicketPtr b = enter(1, 40);
  EXPECT_TRUE(a->admitted());
  EXPECT_TRUE(b->admitted());
  EXPECT_EQ(admission_->running(), 2U);
  EXPECT_EQ(admission_->reserved(), 100U);
  EXPECT_TRUE(turns_.empty()) << "who runs at once is not called";
}

TEST_F(AdmissionTest, WhoLeavesMakesRoomForTheNext) {
  limit({.max_running = 1, .max_queued = 9, .max_queued_per_peer = 9, .memory_budget = 100});
  TicketPtr first = enter(1);
  const TicketPtr second = enter(1, 1, "second");
  EXPECT_FALSE(second->admitted());
  EXPECT_EQ(admission_->queued(), 1U);
  first.reset();
  EXPECT_TRUE(second->admitted());
  EXPECT_THAT(turns_, ElementsAre("second"));
  EXPECT_EQ(admission_->queued(), 0U);
}

TEST_F(AdmissionTest, TurnsGoRoundThePeers) {
  limit({.max_running = 1, .max_queued = 99, .max_queued_per_peer = 99, .memory_budget = 100});
  TicketPtr running = enter(1);
  std::vector<TicketPtr> waiting;
  for (const char* name : {"1a", "1b", "1c"}) waiting.push_back(enter(1, 1, name));
  for (const char* name : {"2a", "2b"}) waiting.push_back(enter(2, 1, name));
  waiting.push_back(enter(3, 1, "3a"));
  running.reset();
  for (std::size_t done = 0; done < 5; ++done) {
    for (TicketPtr& ticket : waiting) {
      if (ticket && ticket->admitted()) {
        ticket.reset();
        break;
      }
    }
  }
  EXPECT_THAT(turns_, ElementsAre("1a", "2a", "3a", "1b", "2b", "1c"));
}

TEST_F(AdmissionTest, WhoGivesUpIsForgotten) {
  limit({.max_running = 1, .max_queued = 9, .max_queued_per_peer = 9, .memory_budget = 100});
  TicketPtr running = enter(1);
  TicketPtr gone = enter(2, 1, "gone");
  const TicketPtr next = enter(3, 1, "next");
  gone.reset();
  EXPECT_EQ(admission_->queued(), 1U);
  running.reset();
  EXPECT_THAT(turns_, ElementsAre("next"));
}

TEST_F(AdmissionTest, AFullQueueRefusesAndNamesTheBudget) {
  limit({.max_running = 1, .max_queued = 2, .max_queued_per_peer = 1, .memory_budget = 100});
  const TicketPtr running = enter(1);
  const TicketPtr mine = enter(1);
  EXPECT_EQ(refused(1).budget, Budget::kQueuedPerPeer);
  const TicketPtr yours = enter(2);
  EXPECT_EQ(refused(3).budget, Budget::kQueued);
  EXPECT_EQ(admission_->queued(), 2U) << "refused ones leave nothing behind";
}

TEST_F(AdmissionTest, WithoutAQueueTheCauseIsNamed) {
  limit({.max_running = 2, .max_queued = 0, .max_queued_per_peer = 0, .memory_budget = 100});
  const TicketPtr a = enter(1, 80);
  EXPECT_EQ(refused(1, 30).budget, Budget::kMemory);
  const TicketPtr b = enter(1, 20);
  EXPECT_EQ(refused(1, 0).budget, Budget::kRunning);
}

TEST_F(AdmissionTest, MoreThanTheWholeBudgetIsRefusedAtOnce) {
  limit({.max_running = 2, .max_queued = 9, .max_queued_per_peer = 9, .memory_budget = 100});
  EXPECT_EQ(refused(1, 101).budget, Budget::kMemory);
  EXPECT_EQ(admission_->queued(), 0U);
}

TEST_F(AdmissionTest, ABigRequestIsPassedOverButNotForEver) {
  limit({.max_running = 99, .max_queued = 999, .max_queued_per_peer = 999, .memory_budget = 100});
  TicketPtr keeper = enter(1, 50);
  const TicketPtr big = enter(1, 60, "big");
  EXPECT_FALSE(big->admitted());
  // Small ones of another peer fit beside it, one after the other.
  int passed = 0;
  for (; passed < 1000; ++passed) {
    const TicketPtr small = enter(2, 10);
    if (!small->admitted()) break;
  }
  EXPECT_EQ(passed, 32);
  const TicketPtr small = enter(2, 10, "small");
  EXPECT_FALSE(small->admitted()) << "everybody waits until it fits";
  keeper.reset();
  EXPECT_TRUE(big->admitted());
  EXPECT_TRUE(small->admitted());
}

TEST_F(AdmissionTest, AnAnswerUnderWayKeepsItsMemoryButNotItsPlace) {
  limit({.max_running = 1, .max_queued = 9, .max_queued_per_peer = 9, .memory_budget = 100});
  TicketPtr first = enter(1, 80);
  const TicketPtr fits = enter(1, 60, "fits");
  first->keep_only({40, 0});
  EXPECT_TRUE(fits->admitted());
  EXPECT_EQ(admission_->reserved(), 100U);
  EXPECT_EQ(admission_->running(), 1U);
  first->keep_only({90, 0});
  EXPECT_EQ(admission_->reserved(), 100U) << "never more than it has";
  first.reset();
  EXPECT_EQ(admission_->reserved(), 60U);
  EXPECT_EQ(admission_->running(), 1U);
}

TEST_F(AdmissionTest, UnreadAnswersKeepTheirShareOfTheAnswerBudget) {
  limit({.max_running = 9,
         .max_queued = 9,
         .max_queued_per_peer = 9,
         .memory_budget = 100,
         .answer_budget = 100});
  TicketPtr first = enter(1, 1, {}, 50);
  EXPECT_EQ(admission_->answers(), 50U);
  const TicketPtr second = enter(2, 1, {}, 40);
  const TicketPtr third = enter(3, 1, "third", 20);
  EXPECT_FALSE(third->admitted());
  EXPECT_EQ(admission_->refusal(*third).budget, Budget::kAnswers);
  EXPECT_FALSE(admission_->refusal(*third).own);
  first->keep_only({0, 45});
  EXPECT_FALSE(third->admitted());
  first->keep_only({0, 40});
  EXPECT_TRUE(third->admitted());
  first.reset();
  EXPECT_EQ(admission_->answers(), 60U);
}

// So that nobody is cut off from whose end nothing would come.
TEST_F(AdmissionTest, ATicketTellsWhichBudgetsItsEndWouldGiveBack) {
  limit({.max_running = 1,
         .max_queued = 9,
         .max_queued_per_peer = 9,
         .memory_budget = 100,
         .answer_budget = 100});
  const TicketPtr first = enter(1, 60, "first", 10);
  const TicketPtr second = enter(1, 60, "second", 10);
  EXPECT_TRUE(first->holds(Budget::kRunning));
  EXPECT_TRUE(first->holds(Budget::kMemory));
  EXPECT_TRUE(first->holds(Budget::kAnswers));
  EXPECT_FALSE(first->holds(Budget::kQueued));
  EXPECT_FALSE(second->holds(Budget::kMemory)) << "it only waits";
  EXPECT_FALSE(second->holds(Budget::kRunning));
  EXPECT_TRUE(second->holds(Budget::kQueued));
  first->keep_only({0, 10});
  EXPECT_FALSE(first->holds(Budget::kRunning));
  EXPECT_FALSE(first->holds(Budget::kMemory));
  EXPECT_TRUE(first->holds(Budget::kAnswers));
  first->keep_only({0, 0});
  EXPECT_FALSE(first->holds(Budget::kAnswers));
}

TEST_F(AdmissionTest, AnAnswerThatBecameLongerIsCountedAsLongAsItIs) {
  limit({.max_running = 9,
         .max_queued = 9,
         .max_queued_per_peer = 9,
         .memory_budget = 100,
         .answer_budget = 100});
  TicketPtr longer = enter(1, 1, {}, 10);
  longer->keep_only({0, 200});
  const TicketPtr waiting = enter(2, 1, "waiting", 0);
  EXPECT_FALSE(waiting->admitted());
  longer.reset();
  EXPECT_TRUE(waiting->admitted());
}

TEST_F(AdmissionTest, WhoReadsNothingWaitsAloneAndHoldsUpNobody) {
  limit({.max_running = 9,
         .max_queued = 99,
         .max_queued_per_peer = 99,
         .memory_budget = 100,
         .answer_budget = 100});
  TicketPtr unread = enter(1, 1, {}, 50);
  unread->keep_only({0, 50});
  const TicketPtr his = enter(1, 1, "his", 1);
  EXPECT_FALSE(his->admitted());
  EXPECT_EQ(admission_->refusal(*his).budget, Budget::kAnswers);
  EXPECT_TRUE(admission_->refusal(*his).own);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(enter(2, 1, {}, 50)->admitted()) << i;
  unread.reset();
  EXPECT_TRUE(his->admitted());
}

TEST_F(AdmissionTest, AnAnswerOverHalfOfTheBudgetIsRefusedAtOnce) {
  limit({.max_running = 9,
         .max_queued = 9,
         .max_queued_per_peer = 9,
         .memory_budget = 100,
         .answer_budget = 100});
  EXPECT_TRUE(enter(1, 1, {}, 50)->admitted());
  EXPECT_EQ(refused(1, 1, 51).budget, Budget::kAnswers);
}

TEST_F(AdmissionTest, TheRetryTimeFollowsHowLongRunsTakeAndHowManyWait) {
  limit({.max_running = 1, .max_queued = 1, .max_queued_per_peer = 1, .memory_budget = 100});
  for (int i = 0; i < 100; ++i) {
    TicketPtr run = enter(1);
    now_ += seconds(10);
  }
  const TicketPtr running = enter(1);
  const TicketPtr waiting = enter(1);
  // Two wait already with the refused one, and one more: three turns of 10 s.
  const auto retry = refused(2).retry_after;
  EXPECT_GE(retry, seconds(20));
  EXPECT_LE(retry, seconds(31));
}

TEST_F(AdmissionTest, TheRetryTimeIsNeverBelowASecondOrAboveAMinute) {
  limit({.max_running = 1, .max_queued = 0, .max_queued_per_peer = 0, .memory_budget = 100});
  for (int i = 0; i < 100; ++i) (void)enter(1);
  TicketPtr running = enter(1);
  EXPECT_EQ(refused(1).retry_after, seconds(1));
  for (int i = 0; i < 100; ++i) {
    now_ += seconds(3600);
    running.reset();
    running = enter(1);
  }
  EXPECT_EQ(refused(1).retry_after, seconds(60));
}

TEST_F(AdmissionTest, BudgetsHaveTheNamesOfTheConfiguration) {
  EXPECT_EQ(budget_name(Budget::kRunning), "max_running");
  EXPECT_EQ(budget_name(Budget::kMemory), "memory_budget");
  EXPECT_EQ(budget_name(Budget::kAnswers), "answer_budget");
  EXPECT_EQ(budget_name(Budget::kQueued), "max_queued");
  EXPECT_EQ(budget_name(Budget::kQueuedPerPeer), "max_queued_per_peer");
}

}  // namespace
}  // namespace sbx::daemon
