#include "agentd/history/history.h"

#include <utility>

namespace agentd::history {
namespace {

using sbx::Result;
using store::Durability;
using store::Statement;

// Each table or index more is a page more that is written for every request. So no index tells what
// is under way, which is asked for at start alone, nor whose a request is: a page of a list is read
// from the newest on. Nor does a record repeat its summary: two small ones are in a page.
constexpr char kSchema[] = R"(
CREATE TABLE IF NOT EXISTS requests(
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL,
  owner INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  summary TEXT NOT NULL,
  record TEXT NOT NULL,
  events TEXT NOT NULL,
  artifact_bytes INTEGER NOT NULL
);
DROP INDEX IF EXISTS requests_by_owner;
)";

// From a file with an index of what is under way, and a table of numbers that were given.
constexpr char kToFewerTables[] = R"(
DROP INDEX IF EXISTS unfinished_requests;
ALTER TABLE requests RENAME TO requests_before;
)";
constexpr char kFromBefore[] = R"(
INSERT INTO requests SELECT * FROM requests_before;
DROP TABLE requests_before;
)";

constexpr std::int64_t kNobody = -1;  // the owner of what came over TCP

std::int64_t owner_number(const Owner& owner) {
  return owner ? std::int64_t{*owner} : kNobody;
}

Statement& bind_contents(Statement& statement, const Entry& entry) {
  return statement.bind(1, entry.id)
      .bind(2, std::int64_t{entry.ended})
      .bind(3, entry.summary.text())
      .bind(4, entry.record.text())
      .bind(5, entry.events.text())
      .bind(6, static_cast<std::int64_t>(entry.artifact_bytes));
}

Owner owner_from(std::int64_t number) {
  return number == kNobody ? Owner() : Owner(static_cast<std::uint32_t>(number));
}

// Of two objects as they stand in JSON, one with the members of both.
std::string joined(std::string summary, std::string_view record) {
  const bool objects = summary.ends_with('}') && record.starts_with('{');
  if (!objects || summary == "{}") return std::string(record);
  if (record == "{}") return summary;
  summary.back() = ',';
  return summary.append(record.substr(1));
}

}  // namespace

Result<History> History::open(store::Database database) {
  History history(std::move(database));
  SBX_TRY(store::in_transaction(history.database_, Durability::kPower,
                                [&history] { return history.make_tables(); }));
  return history;
}

Result<void> History::make_tables() {
  SBX_ASSIGN(const bool older, database_.has("index", "unfinished_requests"));
  if (older) SBX_TRY(database_.execute(kToFewerTables));
  SBX_TRY(database_.execute(kSchema));
  if (older) SBX_TRY(database_.execute(kFromBefore));
  return {};
}

Result<void> History::save(const Entry& entry) {
  forget_totals_after_a_rollback();
  return store::in_transaction(database_, Durability::kProcess, [&]() -> Result<void> {
    SBX_ASSIGN(const auto before, put(entry));
    if (totals_) {
      totals_->requests += before ? 0 : 1;
      totals_->bytes += static_cast<std::int64_t>(entry.artifact_bytes) - before.value_or(0);
    }
    return {};
  });
}

// The bytes of artifacts that it had; nullopt: it was not there. At its submission it never is, and
// until its end it has none: neither is asked for first.
Result<std::optional<std::int64_t>> History::put(const Entry& entry) {
  if (!entry.ended) {
    SBX_ASSIGN(const bool inserted, insert(entry));
    if (inserted) return std::optional<std::int64_t>();
  }
  SBX_ASSIGN(const bool had_none, update(entry, 0));
  if (had_none) return std::optional<std::int64_t>(0);
  SBX_ASSIGN(const auto before, stored_bytes(entry.id));
  if (before) {
    SBX_TRY(update(entry, *before));
  } else {
    SBX_TRY(insert(entry));
  }
  return before;
}

// False: it is there already.
Result<bool> History::insert(const Entry& entry) {
  SBX_ASSIGN(Statement insert,
             database_.statement("INSERT INTO requests(id, ended, summary, record, events,"
                                 " artifact_bytes, created_ms, owner)"
                                 " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
                                 " ON CONFLICT DO NOTHING"));
  bind_contents(insert, entry).bind(7, entry.created_ms).bind(8, owner_number(entry.owner));
  SBX_ASSIGN(const int rows, insert.run_and_count());
  return rows > 0;
}

// An index is written only where what it is of is named. False: there is none with so many bytes.
Result<bool> History::update(const Entry& entry, std::int64_t bytes_before) {
  SBX_ASSIGN(Statement update,
             database_.statement("UPDATE requests SET ended = ?2, summary = ?3, record = ?4,"
                                 " events = ?5, artifact_bytes = ?6"
                                 " WHERE id = ?1 AND artifact_bytes = ?7"));
  SBX_ASSIGN(const int rows, bind_contents(update, entry).bind(7, bytes_before).run_and_count());
  return rows > 0;
}

Result<std::optional<std::int64_t>> History::stored_bytes(const std::string& id) {
  SBX_ASSIGN(Statement select,
             database_.statement("SELECT artifact_bytes FROM requests WHERE id = ?1"));
  SBX_ASSIGN(const bool row, select.bind(1, id).step());
  return row ? std::optional(select.integer(0)) : std::nullopt;
}

Result<std::optional<Stored>> History::find(const std::string& id) {
  SBX_ASSIGN(Statement select,
             database_.statement(
                 "SELECT owner, ended, summary, record, events FROM requests WHERE id = ?1"));
  SBX_ASSIGN(const bool row, select.bind(1, id).step());
  if (!row) return std::optional<Stored>();
  return std::optional(Stored{id, owner_from(select.integer(0)), select.integer(1) != 0,
                              joined(select.text(2), select.text(3)), select.text(4)});
}

Result<History::Page> History::list(const Owner& owner, bool all, const std::string& before,
                                    int limit) {
  SBX_ASSIGN(
      Statement select,
      database_.statement("SELECT id, summary FROM requests WHERE (?1 OR owner = ?2) AND"
                          " (?3 = '' OR number < (SELECT number FROM requests WHERE id = ?3))"
                          " ORDER BY number DESC LIMIT ?4"));
  select.bind(1, std::int64_t{all})
      .bind(2, owner_number(owner))
      .bind(3, before)
      .bind(4, std::int64_t{limit} + 1);
  Page page;
  std::string last;
  for (;;) {
    SBX_ASSIGN(const bool row, select.step());
    if (!row) return page;
    if (page.summaries.size() == static_cast<std::size_t>(limit)) {
      page.next = last;
      return page;
    }
    last = select.text(0);
    page.summaries.push_back(select.text(1));
  }
}

Result<std::vector<std::string>> History::unfinished() {
  SBX_ASSIGN(Statement select, database_.statement("SELECT id FROM requests WHERE ended = 0"));
  std::vector<std::string> ids;
  for (;;) {
    SBX_ASSIGN(const bool row, select.step());
    if (!row) return ids;
    ids.push_back(select.text(0));
  }
}

Result<History::Totals> History::count() {
  SBX_ASSIGN(Statement select,
             database_.statement("SELECT count(*), ifnull(sum(artifact_bytes), 0) FROM requests"));
  SBX_TRY(select.step());
  return Totals{select.integer(0), select.integer(1)};
}

void History::forget_totals_after_a_rollback() {
  if (std::exchange(rollbacks_, database_.rollbacks()) == database_.rollbacks()) return;
  totals_.reset();
}

Result<bool> History::is_over(std::int64_t most, std::int64_t bytes) {
  forget_totals_after_a_rollback();
  if (!totals_) {
    SBX_ASSIGN(totals_, count());
  }
  return totals_->requests > most || totals_->bytes > bytes;
}

Result<std::vector<std::string>> History::prune(std::int64_t most, std::int64_t bytes) {
  SBX_ASSIGN(const bool over, is_over(most, bytes));
  if (!over) return std::vector<std::string>();
  return store::in_transaction(database_, Durability::kProcess,
                               [&]() -> Result<std::vector<std::string>> {
                                 Totals total = *totals_;
                                 SBX_ASSIGN(auto gone, remove_oldest(total, most, bytes));
                                 totals_ = total;
                                 return gone;
                               });
}

Result<std::vector<std::string>> History::remove_oldest(Totals& total, std::int64_t most,
                                                        std::int64_t bytes) {
  std::vector<std::string> gone;
  while (total.requests > most || total.bytes > bytes) {
    SBX_ASSIGN(
        Statement remove,
        database_.statement("DELETE FROM requests WHERE number = (SELECT number FROM requests"
                            " WHERE ended = 1 ORDER BY number LIMIT 1)"
                            " RETURNING id, artifact_bytes"));
    SBX_ASSIGN(const bool row, remove.step());
    if (!row) break;  // all that is left is under way
    gone.push_back(remove.text(0));
    total = {total.requests - 1, total.bytes - remove.integer(1)};
    SBX_TRY(remove.step());
  }
  return gone;
}

}  // namespace agentd::history
