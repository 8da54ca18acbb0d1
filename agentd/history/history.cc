#include "agentd/history/history.h"

#include <utility>

namespace agentd::history {
namespace {

using sbx::Result;
using store::Durability;
using store::Statement;

constexpr char kSchema[] = R"(
CREATE TABLE IF NOT EXISTS requests(
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL,
  owner INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  summary TEXT NOT NULL,
  record TEXT NOT NULL,
  events TEXT NOT NULL,
  artifact_bytes INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS requests_by_owner ON requests(owner, number);
CREATE INDEX IF NOT EXISTS unfinished_requests ON requests(id) WHERE ended = 0;
)";

constexpr std::int64_t kNobody = -1;  // the owner of what came over TCP

std::int64_t owner_number(const Owner& owner) {
  return owner ? std::int64_t{*owner} : kNobody;
}

Owner owner_from(std::int64_t number) {
  return number == kNobody ? Owner() : Owner(static_cast<std::uint32_t>(number));
}

}  // namespace

Result<History> History::open(store::Database database) {
  SBX_TRY(store::in_transaction(database, Durability::kPower,
                                [&] { return database.execute(kSchema); }));
  return History(std::move(database));
}

Result<void> History::save(const Entry& entry) {
  forget_totals_after_a_rollback();
  return store::in_transaction(database_, Durability::kProcess, [&]() -> Result<void> {
    const auto bytes = static_cast<std::int64_t>(entry.artifact_bytes);
    SBX_ASSIGN(const auto before, stored_bytes(entry.id));
    SBX_ASSIGN(Statement insert,
               database_.statement(
                   "INSERT INTO requests(id, created_ms, owner, ended, summary, record, events,"
                   " artifact_bytes) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
                   " ON CONFLICT(id) DO UPDATE SET ended = ?4, summary = ?5, record = ?6,"
                   " events = ?7, artifact_bytes = ?8"));
    insert.bind(1, entry.id)
        .bind(2, entry.created_ms)
        .bind(3, owner_number(entry.owner))
        .bind(4, std::int64_t{entry.ended})
        .bind(5, entry.summary.text())
        .bind(6, entry.record.text())
        .bind(7, entry.events.text())
        .bind(8, bytes);
    SBX_TRY(insert.run());
    if (totals_) {
      totals_->requests += before ? 0 : 1;
      totals_->bytes += bytes - before.value_or(0);
    }
    return {};
  });
}

Result<std::optional<std::int64_t>> History::stored_bytes(const std::string& id) {
  SBX_ASSIGN(Statement select,
             database_.statement("SELECT artifact_bytes FROM requests WHERE id = ?1"));
  SBX_ASSIGN(const bool row, select.bind(1, id).step());
  return row ? std::optional(select.integer(0)) : std::nullopt;
}

Result<std::optional<Stored>> History::find(const std::string& id) {
  SBX_ASSIGN(
      Statement select,
      database_.statement("SELECT owner, ended, record, events FROM requests WHERE id = ?1"));
  SBX_ASSIGN(const bool row, select.bind(1, id).step());
  if (!row) return std::optional<Stored>();
  return std::optional(Stored{id, owner_from(select.integer(0)), select.integer(1) != 0,
                              select.text(2), select.text(3)});
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
