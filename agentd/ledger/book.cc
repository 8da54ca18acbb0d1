#include "agentd/ledger/book.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

namespace agentd::ledger {
namespace {

using store::Durability;
using store::Statement;

// The CHECK is the invariant once more, in a place that no mistake of ours can get around.
// `lines` is [[account, reserved, settled, flagged], …]. What a reservation holds is in its own
// row, and no index tells the open ones: each page more is written three times for every request.
// For IN of three or more SQLite makes a table in memory each time that the CHECK is looked at,
// which costs more than all the rest of a row. `owners` has whoever may hold something, so that the
// whole table is read for the dead alone.
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
  state TEXT NOT NULL CHECK(state = 'reserved' OR state = 'settled' OR state = 'released'),
  note TEXT NOT NULL DEFAULT '',
  opened_ms INTEGER NOT NULL,
  closed_ms INTEGER,
  lines TEXT NOT NULL DEFAULT '[]'
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owners(name TEXT PRIMARY KEY) WITHOUT ROWID;
)";

// From a file in which lines were a table.
constexpr char kFromLinesTable[] = R"(
ALTER TABLE reservations ADD COLUMN lines TEXT NOT NULL DEFAULT '[]';
UPDATE reservations SET lines =
  (SELECT json_group_array(json_array(account, reserved, settled, flagged))
   FROM lines WHERE reservation = reservations.id);
INSERT OR IGNORE INTO owners SELECT owner FROM reservations WHERE state = 'reserved';
DROP INDEX IF EXISTS open_reservations;
DROP TABLE lines;
)";

// From a file whose reservations have a CHECK with IN. A CHECK cannot be altered.
constexpr char kToPlainCheck[] = "ALTER TABLE reservations RENAME TO reservations_before";
constexpr char kFromListCheck[] = R"(
INSERT INTO reservations SELECT id, owner, state, note, opened_ms, closed_ms, lines
  FROM reservations_before;
DROP TABLE reservations_before;
)";

// A bound that no sum of two overflows at.
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;

// In quotes in JSON without more, and before every prefix's end in forget().
bool is_name(std::string_view account) {
  return std::all_of(account.begin(), account.end(),
                     [](char c) { return c >= ' ' && c < '\x7F' && c != '"' && c != '\\'; });
}

sbx::Result<void> check(const Reservation& reservation) {
  for (const Line& line : reservation.lines) {
    if (line.amount < 0 || line.amount > kMost || line.cap < 0 || line.cap > kMost) {
      return sbx::invalid(fmt::format("reservation of {} on account {}, whose cap is {}",
                                      line.amount, line.account, line.cap));
    }
    if (!is_name(line.account)) return sbx::invalid("no name of an account: " + line.account);
  }
  return {};
}

std::string text_of(const std::vector<Held>& lines) {
  std::string text = "[";
  for (const Held& line : lines) {
    text += text.size() > 1 ? ",[\"" : "[\"";
    text += line.account;
    text += "\",";
    text += std::to_string(line.reserved);
    text += ',';
    text += std::to_string(line.settled);
    text += line.flagged ? ",1]" : ",0]";
  }
  text += ']';
  return text;
}

// Reads what text_of() writes, and SQLite's json_group_array(), which is the same.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : left_(text) {}

  bool take(char c) {
    if (!left_.starts_with(c)) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool take(std::string& name) {
    if (!take('"')) return false;
    name = left_.substr(0, left_.find('"'));
    left_.remove_prefix(name.size());
    return is_name(name) && take('"');
  }
  bool take(std::int64_t& number) {
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), number);
    left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    return error == std::errc();
  }
  bool take(Held& line) {
    std::int64_t flagged = 0;
    const bool whole = take('[') && take(line.account) && take(',') && take(line.reserved) &&
                       take(',') && take(line.settled) && take(',') && take(flagged) && take(']');
    line.flagged = flagged != 0;
    return whole;
  }
  [[nodiscard]] bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
};

// nullopt: the disk has changed it.
std::optional<std::vector<Held>> lines_from(std::string_view text) {
  LineReader reader(text);
  std::vector<Held> lines;
  bool whole = reader.take('[');
  bool more = whole && !reader.take(']');
  while (whole && more) {
    whole = reader.take(lines.emplace_back());
    more = reader.take(',');
    if (!more) whole = whole && reader.take(']');
  }
  if (!whole || !reader.at_end()) return std::nullopt;
  return lines;
}

sbx::Error broken(const std::string& id) {
  return {.code = sbx::ErrorCode::kHost,
          .stage = "store",
          .operation = "reservation",
          .sys_errno = 0,
          .detail = "the lines of " + id + " cannot be read",
          .fix = "move the state directory's agentd.db away; a new one is made"};
}

// The first column of all its rows.
sbx::Result<std::vector<std::string>> texts_of(Statement select) {
  std::vector<std::string> texts;
  for (;;) {
    SBX_ASSIGN(const bool row, select.step());
    if (!row) return texts;
    texts.push_back(select.text(0));
  }
}

}  // namespace

sbx::Result<Book> Book::open(store::Database database, BookOptions options) {
  Book book(std::move(database), std::move(options));
  SBX_TRY(store::in_transaction(book.database_, Durability::kPower,
                                [&book] { return book.make_tables(); }));
  return book;
}

sbx::Result<void> Book::make_tables() {
  SBX_TRY(database_.execute(kSchema));
  SBX_ASSIGN(const bool older, database_.has("table", "lines"));
  if (older) SBX_TRY(database_.execute(kFromLinesTable));
  SBX_TRY(use_plain_check());
  return add_owner();
}

sbx::Result<void> Book::use_plain_check() {
  {
    SBX_ASSIGN(Statement select, database_.statement("SELECT 1 FROM sqlite_schema WHERE"
                                                     " name = 'reservations' AND"
                                                     " instr(sql, 'CHECK(state IN') > 0"));
    SBX_ASSIGN(const bool is_list, select.step());
    if (!is_list) return {};
  }
  SBX_TRY(database_.execute(kToPlainCheck));
  SBX_TRY(database_.execute(kSchema));
  return database_.execute(kFromListCheck);
}

sbx::Result<void> Book::add_owner() {
  SBX_ASSIGN(Statement insert, database_.statement("INSERT OR IGNORE INTO owners VALUES(?1)"));
  return insert.bind(1, options_.owner).run();
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
  std::vector<Held> lines;
  for (const Line& line : reservation.lines) {
    SBX_ASSIGN(Grant room, room_for(line));
    if (!room.granted) return again_or(reservation.id, std::move(room));
    lines.push_back({.account = line.account, .reserved = line.amount});
  }
  SBX_ASSIGN(Statement insert,
             database_.statement("INSERT INTO reservations(id, owner, state, opened_ms, lines)"
                                 " VALUES(?1, ?2, 'reserved', ?3, ?4) ON CONFLICT DO NOTHING"));
  insert.bind(1, reservation.id)
      .bind(2, options_.owner)
      .bind(3, options_.now())
      .bind(4, text_of(lines));
  SBX_ASSIGN(const int rows, insert.run_and_count());
  if (rows == 0) return again_or(reservation.id, broken(reservation.id));
  for (const Line& line : reservation.lines) SBX_TRY(hold(line));
  return Grant{.granted = true};
}

// What is answered for a reservation that is there already; `otherwise` for one that is not.
sbx::Result<Grant> Book::again_or(const std::string& id, sbx::Result<Grant> otherwise) {
  SBX_ASSIGN(const auto known, find(id));
  if (!known) return otherwise;
  if (known->standing == Standing::kReserved) return Grant{.granted = true};
  return sbx::invalid(id + " is over");
}

sbx::Result<Grant> Book::room_for(const Line& line) {
  SBX_ASSIGN(const Balance now, balance(line.account));
  const std::int64_t available = line.cap - now.settled - now.reserved;
  return Grant{line.amount <= available, line.account, std::max<std::int64_t>(available, 0)};
}

sbx::Result<void> Book::hold(const Line& line) {
  SBX_ASSIGN(Statement account,
             database_.statement("INSERT INTO accounts(name, cap, reserved) VALUES(?1, ?2, ?3)"
                                 " ON CONFLICT(name) DO UPDATE"
                                 " SET cap = ?2, reserved = reserved + ?3"));
  return account.bind(1, line.account).bind(2, line.cap).bind(3, line.amount).run();
}

sbx::Result<Settlement> Book::settle(const std::string& id, const std::vector<Actual>& actual) {
  return store::in_transaction(database_, Durability::kProcess, [&]() -> sbx::Result<Settlement> {
    SBX_ASSIGN(auto known, find(id));
    if (!known) return sbx::invalid("no reservation " + id);
    Settlement settlement;
    for (Held& line : known->lines) {
      const auto figure = std::find_if(actual.begin(), actual.end(), [&](const Actual& each) {
        return each.account == line.account;
      });
      if (known->standing == Standing::kReserved) {
        line.settled = figure == actual.end() ? line.reserved : figure->amount;
        line.flagged = line.settled < 0 || line.settled > line.reserved;
        if (line.flagged) line.settled = line.reserved;
      }
      settlement.lines.push_back({line.account, line.settled, line.flagged});
    }
    if (known->standing == Standing::kReserved) {
      SBX_TRY(close(id, Standing::kSettled, {}, known->lines));
    }
    return settlement;
  });
}

sbx::Result<void> Book::release(const std::string& id, const std::string& reason) {
  return store::in_transaction(database_, Durability::kProcess,
                               [&] { return release_inside(id, reason); });
}

sbx::Result<void> Book::release_inside(const std::string& id, const std::string& reason) {
  SBX_ASSIGN(const auto known, find(id));
  // Settled or released before; or never granted.
  if (!known || known->standing != Standing::kReserved) return {};
  return close(id, Standing::kReleased, reason, known->lines);  // whose `settled` is 0
}

// Bills what the lines say was spent.
sbx::Result<void> Book::close(const std::string& id, Standing standing, std::string_view note,
                              const std::vector<Held>& lines) {
  for (const Held& line : lines) {
    SBX_ASSIGN(Statement account,
               database_.statement("UPDATE accounts SET reserved = reserved - ?2,"
                                   " settled = settled + ?3 WHERE name = ?1"));
    SBX_TRY(account.bind(1, line.account).bind(2, line.reserved).bind(3, line.settled).run());
  }
  SBX_ASSIGN(Statement update, database_.statement("UPDATE reservations SET state = ?2, note = ?3,"
                                                   " closed_ms = ?4, lines = ?5 WHERE id = ?1"));
  return update.bind(1, id)
      .bind(2, standing == Standing::kSettled ? "settled" : "released")
      .bind(3, note)
      .bind(4, options_.now())
      .bind(5, text_of(lines))
      .run();
}

sbx::Result<int> Book::release_dead_owners() {
  return store::in_transaction(database_, Durability::kProcess, [&]() -> sbx::Result<int> {
    SBX_TRY(add_owner());  // again: whoever took us for dead by mistake has dropped it
    SBX_ASSIGN(Statement select, database_.statement("SELECT name FROM owners"));
    SBX_ASSIGN(const auto owners, texts_of(std::move(select)));
    int released = 0;
    for (const std::string& owner : owners) {
      if (owner == options_.owner || options_.is_alive(owner)) continue;
      SBX_ASSIGN(const int its, release_all_of(owner));
      released += its;
    }
    return released;
  });
}

sbx::Result<int> Book::release_all_of(const std::string& owner) {
  SBX_ASSIGN(Statement select, database_.statement("SELECT id FROM reservations"
                                                   " WHERE state = 'reserved' AND owner = ?1"));
  select.bind(1, owner);
  SBX_ASSIGN(const auto open, texts_of(std::move(select)));
  for (const std::string& id : open) SBX_TRY(release_inside(id, "its owner died"));
  SBX_ASSIGN(Statement remove, database_.statement("DELETE FROM owners WHERE name = ?1"));
  SBX_TRY(remove.bind(1, owner).run());
  return static_cast<int>(open.size());
}

sbx::Result<std::optional<Book::Known>> Book::find(const std::string& id) {
  SBX_ASSIGN(Statement select,
             database_.statement("SELECT state, lines FROM reservations WHERE id = ?1"));
  SBX_ASSIGN(const bool row, select.bind(1, id).step());
  if (!row) return std::optional<Known>();
  const std::string state = select.text(0);
  auto lines = lines_from(select.text(1));
  if (!lines) return broken(id);
  const Standing open_or_not = state == "reserved" ? Standing::kReserved : Standing::kReleased;
  return std::optional(
      Known{state == "settled" ? Standing::kSettled : open_or_not, *std::move(lines)});
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
    SBX_ASSIGN(Statement reservations,
               database_.statement("DELETE FROM reservations WHERE id >= ?1 AND id < ?2"
                                   " AND state <> 'reserved'"));
    SBX_TRY(reservations.bind(1, prefix).bind(2, end).run());
    SBX_ASSIGN(Statement accounts,
               database_.statement("DELETE FROM accounts WHERE name >= ?1 AND name < ?2"
                                   " AND reserved = 0"));
    return accounts.bind(1, prefix).bind(2, end).run();
  });
}

}  // namespace agentd::ledger
