#include "agentd/ledger/book.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace agentd::ledger {
namespace {

using store::Durability;
using store::Statement;

// The CHECK is the invariant once more, in a place that no mistake of ours can get around.
constexpr char kSchema[] = R"(
CREATE TABLE IF NOT EXISTS accounts(
  name TEXT PRIMARY KEY,
  cap INTEGER NOT NULL,
  settled INTEGER NOT NULL DEFAULT 0 CHECK(settled >= 0),
  reserved INTEGER NOT NULL DEFAULT 0 CHECK(reserved >= 0),
  CHECK(settled + reserved <= cap)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reservations(
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('reserved', 'settled', 'released')),
  note TEXT NOT NULL DEFAULT '',
  opened_ms INTEGER NOT NULL,
  closed_ms INTEGER
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS open_reservations ON reservations(owner) WHERE state = 'reserved';
CREATE TABLE IF NOT EXISTS lines(
  reservation TEXT NOT NULL,
  account TEXT NOT NULL,
  reserved INTEGER NOT NULL,
  settled INTEGER NOT NULL DEFAULT 0,
  flagged INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(reservation, account)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS lines_of_account ON lines(account);
)";

// A bound that no sum of two overflows at.
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;

sbx::Result<void> check(const Reservation& reservation) {
  for (const Line& line : reservation.lines) {
    if (line.amount < 0 || line.amount > kMost || line.cap < 0 || line.cap > kMost) {
      return sbx::invalid(fmt::format("reservation of {} on account {}, whose cap is {}",
                                      line.amount, line.account, line.cap));
    }
  }
  return {};
}

}  // namespace

sbx::Result<Book> Book::open(store::Database database, BookOptions options) {
  SBX_TRY(store::in_transaction(database, Durability::kPower,
                                [&] { return database.execute(kSchema); }));
  return Book(std::move(database), std::move(options));
}

sbx::Result<Grant> Book::reserve(const Reservation& reservation, const Reservation* ahead) {
  SBX_TRY(check(reservation));
  if (ahead != nullptr) SBX_TRY(check(*ahead));
  const Durability durability = reservation.durable ? Durability::kPower : Durability::kProcess;
  return store::in_transaction(database_, durability, [&]() -> sbx::Result<Grant> {
    SBX_ASSIGN(Grant grant, reserve_inside(reservation));
    if (!grant.granted || ahead == nullptr) return grant;
    SBX_ASSIGN(const Grant second, reserve_inside(*ahead));
    grant.ahead = second.granted;
    return grant;
  });
}

sbx::Result<Grant> Book::reserve_inside(const Reservation& reservation) {
  SBX_ASSIGN(const Standing standing, standing_of(reservation.id));
  if (standing == Standing::kReserved) return Grant{.granted = true};  // the same call again
  if (standing != Standing::kUnknown) return sbx::invalid(reservation.id + " is over");
  for (const Line& line : reservation.lines) {
    SBX_ASSIGN(Grant room, room_for(line));
    if (!room.granted) return room;
  }
  SBX_ASSIGN(Statement insert,
             database_.statement("INSERT INTO reservations(id, owner, state, opened_ms)"
                                 " VALUES(?1, ?2, 'reserved', ?3)"));
  insert.bind(1, reservation.id).bind(2, options_.owner).bind(3, options_.now());
  SBX_TRY(insert.run());
  for (const Line& line : reservation.lines) SBX_TRY(add_line(reservation.id, line));
  return Grant{.granted = true};
}

sbx::Result<Grant> Book::room_for(const Line& line) {
  SBX_ASSIGN(const Balance now, balance(line.account));
  const std::int64_t available = line.cap - now.settled - now.reserved;
  return Grant{line.amount <= available, line.account, std::max<std::int64_t>(available, 0)};
}

sbx::Result<void> Book::add_line(const std::string& id, const Line& line) {
  SBX_ASSIGN(Statement account,
             database_.statement("INSERT INTO accounts(name, cap, reserved) VALUES(?1, ?2, ?3)"
                                 " ON CONFLICT(name) DO UPDATE"
                                 " SET cap = ?2, reserved = reserved + ?3"));
  SBX_TRY(account.bind(1, line.account).bind(2, line.cap).bind(3, line.amount).run());
  SBX_ASSIGN(Statement insert,
             database_.statement("INSERT INTO lines(reservation, account, reserved)"
                                 " VALUES(?1, ?2, ?3)"));
  return insert.bind(1, id).bind(2, line.account).bind(3, line.amount).run();
}

sbx::Result<Settlement> Book::settle(const std::string& id, const std::vector<Actual>& actual) {
  return store::in_transaction(database_, Durability::kProcess, [&]() -> sbx::Result<Settlement> {
    SBX_ASSIGN(const Standing standing, standing_of(id));
    if (standing == Standing::kUnknown) return sbx::invalid("no reservation " + id);
    SBX_ASSIGN(std::vector<Held> lines, lines_of(id));
    Settlement settlement;
    for (Held& line : lines) {
      const auto figure = std::find_if(actual.begin(), actual.end(), [&](const Actual& each) {
        return each.account == line.account;
      });
      if (standing == Standing::kReserved) {
        line.settled = figure == actual.end() ? line.reserved : figure->amount;
        line.flagged = line.settled < 0 || line.settled > line.reserved;
        if (line.flagged) line.settled = line.reserved;
        SBX_TRY(bill(id, line));
      }
      settlement.lines.push_back({line.account, line.settled, line.flagged});
    }
    if (standing == Standing::kReserved) SBX_TRY(close(id, Standing::kSettled, {}));
    return settlement;
  });
}

sbx::Result<void> Book::bill(const std::string& id, const Held& line) {
  SBX_ASSIGN(Statement account, database_.statement("UPDATE accounts SET reserved = reserved - ?2,"
                                                    " settled = settled + ?3 WHERE name = ?1"));
  SBX_TRY(account.bind(1, line.account).bind(2, line.reserved).bind(3, line.settled).run());
  SBX_ASSIGN(Statement update, database_.statement("UPDATE lines SET settled = ?3, flagged = ?4"
                                                   " WHERE reservation = ?1 AND account = ?2"));
  return update.bind(1, id)
      .bind(2, line.account)
      .bind(3, line.settled)
      .bind(4, std::int64_t{line.flagged})
      .run();
}

sbx::Result<void> Book::release(const std::string& id, const std::string& reason) {
  return store::in_transaction(database_, Durability::kProcess,
                               [&] { return release_inside(id, reason); });
}

sbx::Result<void> Book::release_inside(const std::string& id, const std::string& reason) {
  SBX_ASSIGN(const Standing standing, standing_of(id));
  if (standing != Standing::kReserved) return {};  // settled or released before; or never granted
  SBX_ASSIGN(const std::vector<Held> lines, lines_of(id));
  for (const Held& line : lines) SBX_TRY(bill(id, line));  // line.settled is 0
  return close(id, Standing::kReleased, reason);
}

sbx::Result<void> Book::close(const std::string& id, Standing standing, std::string_view note) {
  SBX_ASSIGN(Statement update,
             database_.statement("UPDATE reservations SET state = ?2, note = ?3, closed_ms = ?4"
                                 " WHERE id = ?1"));
  return update.bind(1, id)
      .bind(2, standing == Standing::kSettled ? "settled" : "released")
      .bind(3, note)
      .bind(4, options_.now())
      .run();
}

sbx::Result<int> Book::release_dead_owners() {
  return store::in_transaction(database_, Durability::kProcess, [&]() -> sbx::Result<int> {
    std::vector<std::pair<std::string, std::string>> open;  // id, owner
    {
      SBX_ASSIGN(Statement select, database_.statement("SELECT id, owner FROM reservations"
                                                       " WHERE state = 'reserved' ORDER BY owner"));
      for (;;) {
        SBX_ASSIGN(const bool row, select.step());
        if (!row) break;
        open.emplace_back(select.text(0), select.text(1));
      }
    }
    int released = 0;
    std::string owner;  // the one that `dead` is about
    bool dead = false;
    for (const auto& [id, held_by] : open) {
      if (held_by != owner) {
        owner = held_by;
        dead = owner != options_.owner && !options_.is_alive(owner);
      }
      if (!dead) continue;
      SBX_TRY(release_inside(id, "its owner died"));
      ++released;
    }
    return released;
  });
}

sbx::Result<Book::Standing> Book::standing_of(const std::string& id) {
  SBX_ASSIGN(Statement select, database_.statement("SELECT state FROM reservations WHERE id = ?1"));
  SBX_ASSIGN(const bool row, select.bind(1, id).step());
  if (!row) return Standing::kUnknown;
  const std::string state = select.text(0);
  if (state == "reserved") return Standing::kReserved;
  return state == "settled" ? Standing::kSettled : Standing::kReleased;
}

sbx::Result<std::vector<Book::Held>> Book::lines_of(const std::string& id) {
  SBX_ASSIGN(Statement select,
             database_.statement("SELECT account, reserved, settled, flagged FROM lines"
                                 " WHERE reservation = ?1"));
  select.bind(1, id);
  std::vector<Held> lines;
  for (;;) {
    SBX_ASSIGN(const bool row, select.step());
    if (!row) return lines;
    lines.push_back({select.text(0), select.integer(1), select.integer(2), select.integer(3) != 0});
  }
}

sbx::Result<Balance> Book::balance(const std::string& account) {
  SBX_ASSIGN(Statement select,
             database_.statement("SELECT cap, settled, reserved FROM accounts WHERE name = ?1"));
  SBX_ASSIGN(const bool row, select.bind(1, account).step());
  return row ? Balance{select.integer(0), select.integer(1), select.integer(2)} : Balance{};
}

sbx::Result<void> Book::forget(const std::string& prefix) {
  // Names are ASCII: the next prefix in order bounds the range.
  const std::string end = prefix + "\x7F";
  return store::in_transaction(database_, Durability::kProcess, [&]() -> sbx::Result<void> {
    SBX_ASSIGN(Statement lines,
               database_.statement(
                   "DELETE FROM lines WHERE account >= ?1 AND account < ?2 AND reservation IN"
                   " (SELECT id FROM reservations WHERE state <> 'reserved')"));
    SBX_TRY(lines.bind(1, prefix).bind(2, end).run());
    SBX_ASSIGN(Statement reservations,
               database_.statement("DELETE FROM reservations WHERE id >= ?1 AND id < ?2"
                                   " AND state <> 'reserved' AND NOT EXISTS"
                                   " (SELECT 1 FROM lines WHERE reservation = id)"));
    SBX_TRY(reservations.bind(1, prefix).bind(2, end).run());
    SBX_ASSIGN(Statement accounts,
               database_.statement("DELETE FROM accounts WHERE name >= ?1 AND name < ?2"
                                   " AND reserved = 0"));
    return accounts.bind(1, prefix).bind(2, end).run();
  });
}

}  // namespace agentd::ledger
