// Jobs for the store's thread: their order, what is one transaction, and what a failure undoes.
#include "agentd/store/queue.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/support/process.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::store {
namespace {

using sbx::Result;
using sbx::async::Task;

class QueueTest : public ::testing::Test {
 public:  // for the coroutines that are the tests
  Database open() {
    auto database = Database::open({.path = directory_.path() + "/x.db", .busy_milliseconds = 10});
    EXPECT_TRUE(database) << to_string(database.error());
    return *std::move(database);
  }
  void SetUp() override { ASSERT_TRUE(database_.execute("CREATE TABLE t(n INTEGER UNIQUE)")); }

  // Notes whether it was a part of the queue's transaction. 0 fails, after it has written.
  auto insert(std::int64_t n) {
    return [this, n]() -> Result<std::int64_t> {
      together_.push_back(database_.in_transaction());
      return in_transaction(database_, Durability::kProcess, [&]() -> Result<std::int64_t> {
        SBX_ASSIGN(Statement statement, database_.statement("INSERT INTO t VALUES(?1)"));
        SBX_TRY(statement.bind(1, n).run());
        if (n == 0) return sbx::invalid("nothing is inserted");
        return n;
      });
    };
  }
  void give(std::int64_t n) {
    queue_->give(insert(n), [this, n](const Result<std::int64_t>& result) {
      told_ += std::to_string(n) + (result ? " " : "! ");
    });
  }
  // What is given until go() waits, or comes while a transaction is under way.
  void hold() {
    queue_->give(
        [until = go_.get_future().share()]() -> Result<void> {
          until.wait();
          return {};
        },
        [](const Result<void>&) {});
  }
  void go() { go_.set_value(); }
  Task<void> written() {
    auto nothing = [] { return true; };
    (void)co_await queue_->run(nothing);
  }
  std::string rows() {
    std::string text;
    auto select = database_.statement("SELECT n FROM t ORDER BY rowid");
    while (*select->step()) text += std::to_string(select->integer(0)) + " ";
    return text;
  }
  void run(Task<void> test) { sbx::async::test::run_on(loop_, std::move(test)); }

  sbx::test::TemporaryDirectory directory_;
  Database database_ = open();
  std::promise<void> go_;
  std::vector<bool> together_;
  std::string told_;
  sbx::async::Loop loop_;
  std::optional<Queue> queue_{std::in_place, loop_, database_};
};

TEST_F(QueueTest, WritesThatWaitTogetherAreOneTransactionInTheirOrder) {
  struct Body {
    static Task<void> run(QueueTest& t) {
      t.hold();
      for (const std::int64_t n : {3, 1, 2}) t.give(n);
      t.go();
      co_await t.written();
    }
  };
  run(Body::run(*this));
  EXPECT_EQ(told_, "3 1 2 ");
  EXPECT_EQ(rows(), "3 1 2 ");
  EXPECT_EQ(together_, std::vector<bool>({true, true, true}));
}

TEST_F(QueueTest, WhatIsGivenBeforeTheCommitIsPartOfIt) {
  struct Body {
    static Task<void> run(QueueTest& t) {
      Database other = t.open();
      std::promise<void> begun;
      // Under way as soon as it has the only place to write.
      auto first = [&t, &begun, until = t.go_.get_future().share()]() -> Result<std::int64_t> {
        begun.set_value();
        until.wait();
        return t.insert(1)();
      };
      t.queue_->give(first, [&t](const Result<std::int64_t>&) { t.told_ += "1 "; });
      (void)co_await t.loop_.next_turn();
      (void)co_await t.loop_.next_turn();
      begun.get_future().wait();
      // In the same transaction, nobody else sees what the first has written.
      auto second = [&t, &other]() -> Result<std::int64_t> {
        auto select = other.statement("SELECT count(*) FROM t");
        EXPECT_TRUE(*select->step());
        EXPECT_EQ(select->integer(0), 0);
        return t.insert(2)();
      };
      t.queue_->give(second, [&t](const Result<std::int64_t>&) { t.told_ += "2 "; });
      EXPECT_EQ(other.begin(Durability::kProcess).has_value(), false) << "it holds the file";
      t.go();
      co_await t.written();
    }
  };
  run(Body::run(*this));
  EXPECT_EQ(told_, "1 2 ");
  EXPECT_EQ(rows(), "1 2 ");
  EXPECT_EQ(together_, std::vector<bool>({true, true}));
}

TEST_F(QueueTest, WhatIsGivenInOneTurnOfTheLoopIsOneTransaction) {
  struct Body {
    static Task<void> run(QueueTest& t) {
      for (std::int64_t n = 1; n <= 20; ++n) {
        t.give(n);
        // Takes the thread's own time for a write, and more.
        Database other = t.open();
        auto select = other.statement("SELECT count(*) FROM t");
        EXPECT_TRUE(*select->step());
        EXPECT_EQ(select->integer(0), 0);
      }
      co_await t.written();
    }
  };
  run(Body::run(*this));
  EXPECT_EQ(together_, std::vector<bool>(20, true));
  EXPECT_EQ(database_.rollbacks(), 0U);
}

TEST_F(QueueTest, AWriteIsCommittedWhenItIsTold) {
  struct Body {
    static Task<void> run(QueueTest& t) {
      Database other = t.open();
      for (const std::int64_t n : {1, 2}) {
        auto job = t.insert(n);
        (void)co_await t.queue_->write(job);
        auto select = other.statement("SELECT max(n) FROM t");
        EXPECT_TRUE(*select->step());
        EXPECT_EQ(select->integer(0), n);
      }
    }
  };
  run(Body::run(*this));
}

TEST_F(QueueTest, OneThatFailsTakesNoOtherWithIt) {
  struct Body {
    static Task<void> run(QueueTest& t) {
      t.hold();
      for (const std::int64_t n : {1, 0, 2, 2}) t.give(n);
      t.go();
      co_await t.written();
    }
  };
  run(Body::run(*this));
  EXPECT_EQ(told_, "1 0! 2 2! ");
  EXPECT_EQ(rows(), "1 2 ");
  EXPECT_EQ(together_, std::vector<bool>({true, true, false, false, false, false}));
}

TEST_F(QueueTest, OtherJobsSeeWhatWasGivenBeforeCommittedAndRunInNoTransaction) {
  struct Body {
    static Task<void> run(QueueTest& t) {
      t.hold();
      t.give(1);
      t.give(2);
      t.go();
      auto look = [&t] { return t.database_.in_transaction() ? "inside" : t.rows(); };
      const std::string seen = co_await t.queue_->run(look);
      EXPECT_EQ(seen, "1 2 ");
    }
  };
  run(Body::run(*this));
}

TEST_F(QueueTest, WhileAnotherProcessWritesAllFailAndLaterNoneDoes) {
  Database other = open();
  struct Body {
    static Task<void> run(QueueTest& t, Database& other) {
      EXPECT_TRUE(other.begin(Durability::kProcess));
      t.hold();
      t.give(1);
      t.give(2);
      t.go();
      co_await t.written();
      other.rollback();
      t.give(1);
      t.give(2);
      co_await t.written();
    }
  };
  run(Body::run(*this, other));
  EXPECT_EQ(told_, "1! 2! 1 2 ");
  EXPECT_EQ(rows(), "1 2 ");
}

TEST_F(QueueTest, WhatWasGivenIsDoneBeforeItEnds) {
  struct Body {
    static Task<void> run(QueueTest& t) {
      t.give(1);
      t.give(2);
      co_return;
    }
  };
  run(Body::run(*this));
  queue_.reset();
  EXPECT_EQ(rows(), "1 2 ");
}

}  // namespace
}  // namespace agentd::store
