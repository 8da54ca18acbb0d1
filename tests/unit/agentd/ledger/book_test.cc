#include "agentd/ledger/book.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/ledger/owner.h"
#include "agentd/ledger/sqlite_ledger.h"
#include "tests/support/process.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::ledger {
namespace {

class BookTest : public ::testing::Test {
 protected:
  store::Database open_database(std::int64_t max_pages = 0) {
    auto database = store::Database::open({.path = directory_.path() + "/agentd.db",
                                           .busy_milliseconds = busy_milliseconds_,
                                           .max_pages = max_pages});
    EXPECT_TRUE(database) << to_string(database.error());
    return *std::move(database);
  }
  Book open(const std::string& owner = "me", std::int64_t max_pages = 0) {
    return open(open_database(max_pages), owner);
  }
  Book open(store::Database database, const std::string& owner = "me") {
    auto book = Book::open(std::move(database),
                           {.owner = owner,
                            .is_alive = [this](const std::string& who) { return who != dead_; },
                            .now = [] { return 1000; }});
    EXPECT_TRUE(book) << to_string(book.error());
    return *std::move(book);
  }

  sbx::test::TemporaryDirectory directory_;
  std::string dead_ = "nobody";
  int busy_milliseconds_ = 5000;
};

Reservation of(const std::string& id, std::int64_t amount, std::int64_t cap = 100,
               const std::string& account = "a") {
  return {.id = id, .lines = {{account, amount, cap}}};
}

Grant granted(Book& book, const Reservation& reservation) {
  auto grant = book.reserve(reservation);
  EXPECT_TRUE(grant) << to_string(grant.error());
  return grant ? *grant : Grant{};
}

void expect_balance(Book& book, std::int64_t settled, std::int64_t reserved,
                    const std::string& account = "a") {
  const auto balance = book.balance(account);
  ASSERT_TRUE(balance);
  EXPECT_EQ(balance->settled, settled);
  EXPECT_EQ(balance->reserved, reserved);
}

TEST_F(BookTest, AReservationCountsUntilItIsSettledToTheRealFigure) {
  Book book = open();
  EXPECT_TRUE(granted(book, of("r1", 60)).granted);
  expect_balance(book, 0, 60);
  const Grant refused = granted(book, of("r2", 41));
  EXPECT_FALSE(refused.granted);
  EXPECT_EQ(refused.account, "a");
  EXPECT_EQ(refused.available, 40);
  EXPECT_TRUE(granted(book, of("r2", 40)).granted) << "a refusal leaves no trace";
  ASSERT_TRUE(book.settle("r1", {{"a", 10}}));
  expect_balance(book, 10, 40);
  ASSERT_TRUE(book.release("r2", "cancelled"));
  expect_balance(book, 10, 0);
  EXPECT_TRUE(granted(book, of("r3", 90)).granted);
}

TEST_F(BookTest, SeveralAccountsAreReservedTogetherOrNotAtAll) {
  Book book = open();
  Reservation both{.id = "r", .lines = {{"a", 5, 10}, {"b", 11, 10}}};
  const Grant refused = granted(book, both);
  EXPECT_EQ(refused.account, "b");
  expect_balance(book, 0, 0, "a");
  both.lines[1].amount = 10;
  EXPECT_TRUE(granted(book, both).granted);
  ASSERT_TRUE(book.settle("r", {{"b", 0}}));
  expect_balance(book, 5, 0, "a");  // not named: as reserved
  expect_balance(book, 0, 0, "b");
}

TEST_F(BookTest, WhatIsAskedForAheadIsGrantedWhereThereIsRoomAndRefusesNothing) {
  Book book = open();
  const Reservation ahead = of("next", 60, 100, "b");
  auto grant = book.reserve(of("r1", 60), &ahead);
  ASSERT_TRUE(grant);
  EXPECT_TRUE(grant->granted && grant->ahead);
  const Reservation too_much = of("another", 60, 100, "b");
  grant = book.reserve(of("r2", 40), &too_much);
  ASSERT_TRUE(grant);
  EXPECT_TRUE(grant->granted);
  EXPECT_FALSE(grant->ahead);
  expect_balance(book, 0, 100, "a");
  expect_balance(book, 0, 60, "b");
  const Reservation small = of("small", 1, 100, "b");
  grant = book.reserve(of("r3", 1), &small);
  ASSERT_TRUE(grant);
  EXPECT_FALSE(grant->granted || grant->ahead);
  expect_balance(book, 0, 60, "b");
}

TEST_F(BookTest, EveryCallIsIdempotent) {
  Book book = open();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(granted(book, of("r", 60)).granted);
  expect_balance(book, 0, 60);
  for (int i = 0; i < 2; ++i) {
    const auto settled = book.settle("r", {{"a", 7 + i}});
    ASSERT_TRUE(settled);
    EXPECT_EQ(settled->lines.at(0).billed, 7);
  }
  ASSERT_TRUE(book.release("r", "too late"));
  EXPECT_FALSE(book.reserve(of("r", 60))) << "nothing is held for it any more";
  expect_balance(book, 7, 0);
  ASSERT_TRUE(book.release("never", "x"));
  EXPECT_FALSE(book.settle("never", {}));
}

TEST_F(BookTest, AFigureThatCannotBeIsBilledAsReservedAndFlagged) {
  Book book = open();
  for (const std::int64_t figure : {std::int64_t{-1}, std::int64_t{31}, INT64_MAX, INT64_MIN}) {
    const std::string id = "r" + std::to_string(figure);
    EXPECT_TRUE(granted(book, of(id, 30, 1000)).granted);
    const auto settled = book.settle(id, {{"a", figure}});
    ASSERT_TRUE(settled);
    EXPECT_EQ(settled->lines.at(0).billed, 30);
    EXPECT_TRUE(settled->lines.at(0).flagged);
  }
  expect_balance(book, 120, 0);
}

TEST_F(BookTest, AmountsThatCannotBeAreRefusedAsMistakes) {
  Book book = open();
  EXPECT_FALSE(book.reserve(of("r", -1)));
  EXPECT_FALSE(book.reserve(of("r", INT64_MAX, INT64_MAX)));
  EXPECT_FALSE(book.reserve(of("r", 1, -1)));
  EXPECT_TRUE(granted(book, of("r", 0, 0)).granted) << "nothing of nothing";
}

TEST_F(BookTest, ALoweredCapStopsNewReservationsOnly) {
  Book book = open();
  EXPECT_TRUE(granted(book, of("r1", 60, 100)).granted);
  const Grant refused = granted(book, of("r2", 1, 50));
  EXPECT_FALSE(refused.granted);
  EXPECT_EQ(refused.available, 0);
  ASSERT_TRUE(book.settle("r1", {{"a", 60}}));
  EXPECT_FALSE(granted(book, of("r3", 0, 50)).granted) << "settled above it already";
}

TEST_F(BookTest, WhatADeadOwnerHeldIsReleasedAndOnRecord) {
  Book lost = open("lost");
  Book other = open("other");
  EXPECT_TRUE(granted(lost, of("r1", 60)).granted);
  EXPECT_TRUE(granted(other, of("r2", 20)).granted);
  Book book = open();
  EXPECT_TRUE(granted(book, of("r3", 20)).granted);
  EXPECT_EQ(*book.release_dead_owners(), 0);
  dead_ = "lost";
  EXPECT_EQ(*book.release_dead_owners(), 1);
  EXPECT_EQ(*book.release_dead_owners(), 0);
  expect_balance(book, 0, 40);
}

TEST_F(BookTest, WhoWasTakenForDeadByMistakeIsKnownAgain) {
  Book lost = open("lost");
  Book book = open();
  dead_ = "lost";
  EXPECT_EQ(*book.release_dead_owners(), 0);
  dead_ = "nobody";
  EXPECT_EQ(*lost.release_dead_owners(), 0);
  EXPECT_TRUE(granted(lost, of("r", 60)).granted);
  dead_ = "lost";
  EXPECT_EQ(*book.release_dead_owners(), 1);
  expect_balance(book, 0, 0);
}

TEST_F(BookTest, AnAccountHasANameThatNeedsNoQuoting) {
  Book book = open();
  for (const char* name : {"a\"b", "a\\b", "a\nb", "\xC3\xA4", "a\x7F"}) {
    EXPECT_FALSE(book.reserve(of("r", 1, 100, name))) << name;
  }
  EXPECT_TRUE(granted(book, of("r", 1, 100, "day/2024-05-01/cost [a, b] 'c'")).granted);
}

// The tables of agentd before lines were in the row of their reservation.
TEST_F(BookTest, AnEarlierFileKeepsItsBalancesAndWhatIsReserved) {
  store::Database database = open_database();
  ASSERT_TRUE(database.execute(R"(
CREATE TABLE accounts(name TEXT PRIMARY KEY, cap INTEGER NOT NULL,
  settled INTEGER NOT NULL DEFAULT 0, reserved INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE reservations(id TEXT PRIMARY KEY, owner TEXT NOT NULL, state TEXT NOT NULL,
  note TEXT NOT NULL DEFAULT '', opened_ms INTEGER NOT NULL, closed_ms INTEGER) WITHOUT ROWID;
CREATE INDEX open_reservations ON reservations(owner) WHERE state = 'reserved';
CREATE TABLE lines(reservation TEXT NOT NULL, account TEXT NOT NULL, reserved INTEGER NOT NULL,
  settled INTEGER NOT NULL DEFAULT 0, flagged INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(reservation, account)) WITHOUT ROWID;
CREATE INDEX lines_of_account ON lines(account);
INSERT INTO accounts VALUES('a', 100, 7, 30), ('b', 100, 0, 5);
INSERT INTO reservations VALUES('over', 'earlier', 'settled', '', 1, 2),
  ('open', 'earlier', 'reserved', '', 1, NULL), ('lost', 'lost', 'reserved', '', 1, NULL);
INSERT INTO lines VALUES('over', 'a', 60, 7, 1), ('open', 'a', 20, 0, 0), ('open', 'b', 5, 0, 0),
  ('lost', 'a', 10, 0, 0);
)"));
  Book book = open(database);
  expect_balance(book, 7, 30, "a");
  const auto settled = book.settle("over", {{"a", 1}});
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->lines.at(0).billed, 7);
  EXPECT_TRUE(settled->lines.at(0).flagged);
  dead_ = "lost";
  EXPECT_EQ(*book.release_dead_owners(), 1);
  expect_balance(book, 7, 20, "a");
  ASSERT_TRUE(book.settle("open", {{"a", 3}, {"b", 4}}));
  expect_balance(book, 10, 0, "a");
  expect_balance(book, 4, 0, "b");
  Book again = open(database);
  expect_balance(again, 10, 0, "a");
}

// The table of agentd while its CHECK was a list.
TEST_F(BookTest, AFileWithAListOfStatesKeepsItsReservations) {
  store::Database database = open_database();
  ASSERT_TRUE(database.execute(R"(
CREATE TABLE accounts(name TEXT PRIMARY KEY, cap INTEGER NOT NULL,
  settled INTEGER NOT NULL DEFAULT 0, reserved INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE reservations(
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('reserved', 'settled', 'released')),
  note TEXT NOT NULL DEFAULT '',
  opened_ms INTEGER NOT NULL,
  closed_ms INTEGER,
  lines TEXT NOT NULL DEFAULT '[]'
) WITHOUT ROWID;
INSERT INTO accounts VALUES('a', 100, 7, 20);
INSERT INTO reservations VALUES('over', 'earlier', 'settled', '', 1, 2, '[["a",60,7,1]]'),
  ('open', 'earlier', 'reserved', '', 1, NULL, '[["a",20,0,0]]');
)"));
  Book book = open(database);
  const auto settled = book.settle("over", {{"a", 1}});
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->lines.at(0).billed, 7);
  ASSERT_TRUE(book.settle("open", {{"a", 3}}));
  expect_balance(book, 10, 0, "a");
  auto lists = database.statement("SELECT count(*) FROM sqlite_schema WHERE sql LIKE '% IN (%'");
  ASSERT_TRUE(*lists->step());
  EXPECT_EQ(lists->integer(0), 0);
  EXPECT_FALSE(database.execute("UPDATE reservations SET state = 'other'"));
}

TEST_F(BookTest, LinesThatTheDiskHasChangedAreAnError) {
  store::Database database = open_database();
  Book book = open(database);
  EXPECT_TRUE(granted(book, of("r", 5, 100)).granted);
  for (const std::string lines :
       {"", "[[]]", R"([["a",5,0]])", R"([["a",5,0,0],])", R"([["a",99999999999999999999,0,0]])"}) {
    auto change = database.statement("UPDATE reservations SET lines = ?1");
    ASSERT_TRUE(change->bind(1, lines).run());
    EXPECT_FALSE(book.settle("r", {})) << lines;
  }
  auto mend = database.statement("UPDATE reservations SET lines = ?1");
  ASSERT_TRUE(mend->bind(1, R"([["a",5,0,0]])").run());
  EXPECT_TRUE(book.settle("r", {}));
}

TEST_F(BookTest, WhatIsOverCanBeForgottenButNotWhatIsReserved) {
  Book book = open();
  EXPECT_TRUE(granted(book, of("request/1/a", 1, 100, "request/1/tokens")).granted);
  EXPECT_TRUE(granted(book, of("request/1/b", 1, 100, "request/1/tokens")).granted);
  ASSERT_TRUE(book.settle("request/1/a", {}));
  ASSERT_TRUE(book.forget("request/1/"));
  expect_balance(book, 1, 1, "request/1/tokens");
  ASSERT_TRUE(book.settle("request/1/b", {}));
  ASSERT_TRUE(book.forget("request/1/"));
  expect_balance(book, 0, 0, "request/1/tokens");
  EXPECT_FALSE(book.settle("request/1/b", {})) << "gone";
}

TEST_F(BookTest, AFullDiskRefusesWithTheReasonAndReservesNothing) {
  Book book = open("me", 12);
  int granted_count = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto grant =
        book.reserve(of("r" + std::to_string(i) + std::string(200, 'x'), 1, 100'000));
    if (!grant) {
      EXPECT_EQ(grant.error().sys_errno, ENOSPC) << to_string(grant.error());
      EXPECT_FALSE(grant.error().fix.empty());
      break;
    }
    ++granted_count;
  }
  EXPECT_GT(granted_count, 0);
  EXPECT_LT(granted_count, 10'000);
  expect_balance(book, 0, granted_count);
}

// What was spent would count as nothing once this process has ended, and what was not as reserved
// until then.
TEST_F(BookTest, ASettlementOrReleaseThatFailedIsMadeUpForLater) {
  busy_milliseconds_ = 10;
  store::Database database = open_database();
  Book book = open(database);
  store::Database other = open_database();
  EXPECT_TRUE(granted(book, of("r", 60)).granted);
  EXPECT_TRUE(granted(book, of("unspent", 30)).granted);
  sbx::async::Loop loop;
  store::Queue queue(loop, database);
  SqliteLedger ledger(book, queue);
  struct Body {
    static sbx::async::Task<void> run(Ledger& ledger, store::Database& other) {
      EXPECT_TRUE(other.begin(store::Durability::kProcess));  // nobody else can write
      ledger.settle("r", {{"a", 7}});
      ledger.release("unspent", "no run came of it");
      auto released = co_await ledger.release_dead_owners();
      EXPECT_FALSE(released);
      other.rollback();
      released = co_await ledger.release_dead_owners();
      EXPECT_TRUE(released);
    }
  };
  sbx::async::test::run_on(loop, Body::run(ledger, other));
  expect_balance(book, 7, 0);
}

TEST_F(BookTest, OnTopOfAChargeThatCannotBeWrittenNothingIsReserved) {
  busy_milliseconds_ = 10;
  store::Database database = open_database();
  Book book = open(database);
  store::Database other = open_database();
  EXPECT_TRUE(granted(book, of("r", 60)).granted);
  sbx::async::Loop loop;
  store::Queue queue(loop, database);
  SqliteLedger ledger(book, queue);
  struct Body {
    static sbx::async::Task<void> run(Ledger& ledger, store::Database& other) {
      EXPECT_TRUE(other.begin(store::Durability::kProcess));  // nobody else can write
      ledger.settle("r", {{"a", 7}});
      bool written = co_await ledger.make_up();
      EXPECT_FALSE(written);
      EXPECT_EQ(ledger.unwritten(), 1U);
      auto grant = co_await ledger.reserve(of("more", 1), std::nullopt);
      EXPECT_FALSE(grant);
      other.rollback();
      grant = co_await ledger.reserve(of("more", 1), std::nullopt);
      EXPECT_TRUE(grant && grant->granted);
      EXPECT_EQ(ledger.unwritten(), 0U);
      written = co_await ledger.make_up();
      EXPECT_TRUE(written);
    }
  };
  sbx::async::test::run_on(loop, Body::run(ledger, other));
  expect_balance(book, 7, 1);
}

TEST_F(BookTest, SurvivesBeingClosedAndOpened) {
  {
    Book book = open();
    EXPECT_TRUE(granted(book, {.id = "r", .lines = {{"a", 9, 10}}, .durable = true}).granted);
  }
  Book book = open("later");
  dead_ = "me";
  expect_balance(book, 0, 9);
  EXPECT_EQ(*book.release_dead_owners(), 1);
}

TEST_F(BookTest, AFileThatIsNoDatabaseIsSaid) {
  const std::string path = directory_.write("x.db", std::string(5000, 'x'));
  const auto database = store::Database::open({.path = path});
  ASSERT_FALSE(database);
  EXPECT_FALSE(database.error().fix.empty());
  EXPECT_FALSE(store::Database::open({.path = directory_.path() + "/none/x.db"}));
}

TEST_F(BookTest, WithoutAWriteAheadLogThereIsNoLedger) {
  const std::string path = directory_.path() + "/x.db";
  // Locks with files beside it, as for file systems without shared memory.
  const auto database = store::Database::open({.path = path, .vfs = "unix-dotfile"});
  ASSERT_FALSE(database);
  EXPECT_EQ(database.error().code, sbx::ErrorCode::kHost);
  EXPECT_NE(database.error().fix.find("--state-dir"), std::string::npos);
  EXPECT_TRUE(store::Database::open({.path = path}));
}

TEST(Owner, ThisProcessIsAliveAndAnotherWithItsPidIsNot) {
  const auto own = own_identity();
  ASSERT_TRUE(own) << to_string(own.error());
  EXPECT_TRUE(is_alive(*own));
  EXPECT_FALSE(is_alive(*own + "0")) << "another start time";
  EXPECT_FALSE(is_alive("00000000-0000-0000-0000-000000000000" + own->substr(own->find(':'))));
  const std::string boot = own->substr(0, own->find(':'));
  EXPECT_FALSE(is_alive(boot + ":4194999:1")) << "above the highest pid";
  EXPECT_TRUE(is_alive("nonsense")) << "when in doubt";
  EXPECT_TRUE(is_alive(boot + ":1/../self:1"));
}

// As in a container whose first process reaps nobody.
TEST(Owner, OneThatNobodyHasReapedIsDead) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto own = own_identity();
    (void)!::write(ends[1], own->data(), own->size());
    (void)::pause();
    ::_exit(0);
  }
  char buffer[200];
  const ssize_t size = ::read(ends[0], buffer, sizeof buffer);
  ASSERT_GT(size, 0);
  const std::string identity(buffer, static_cast<std::size_t>(size));
  EXPECT_TRUE(is_alive(identity));
  (void)::kill(child, SIGKILL);
  siginfo_t information{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child), &information, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(is_alive(identity));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(is_alive(identity));
  (void)::close(ends[0]);
  (void)::close(ends[1]);
}

}  // namespace
}  // namespace agentd::ledger
