// History: the records of requests in SQLite. Blocking; on the store thread.
//
// A request is written when it is submitted, so that one that was under way when agentd died is
// known afterwards, and again at its end. What is kept is what was shown: clean JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agentd/redact/redactor.h"
#include "agentd/store/database.h"
#include "runtime/base/result.h"

namespace agentd::history {

// Whoever submitted a request: a uid, or none for a client over TCP.
using Owner = std::optional<std::uint32_t>;

struct Entry {
  std::string id;
  std::int64_t created_ms = 0;
  Owner owner{};
  bool ended = false;
  redact::Clean summary{};  // a JSON object
  redact::Clean record{};   // another: what its record says besides
  redact::Clean events{};   // JSON: [{id, event, data}], at the end
  std::uint64_t artifact_bytes = 0;
};

// A stored one: text that was clean when it was written. `record` is the whole one, in which a name
// may come twice and holds the second time: those of an earlier agentd had the summary in them.
struct Stored {
  std::string id;
  Owner owner{};
  bool ended = false;
  std::string record;
  std::string events;
};

class History {
 public:
  [[nodiscard]] static sbx::Result<History> open(store::Database database);

  [[nodiscard]] sbx::Result<void> save(const Entry& entry);
  [[nodiscard]] sbx::Result<std::optional<Stored>> find(const std::string& id);

  struct Page {
    std::vector<std::string> summaries;  // newest first
    std::string next;                    // what `before` gives the next page; empty: there is none
  };
  // Those of `owner`, or of everybody when `all`. `before`: an id, or empty for the newest.
  [[nodiscard]] sbx::Result<Page> list(const Owner& owner, bool all, const std::string& before,
                                       int limit);

  // Ids of requests that were not at their end. At start: nobody works on them any more.
  [[nodiscard]] sbx::Result<std::vector<std::string>> unfinished();
  // True when prune() with these bounds may find something to remove.
  [[nodiscard]] sbx::Result<bool> is_over(std::int64_t most, std::int64_t bytes);
  // Removes the oldest that are at their end, while there are more than `most` or their artifacts
  // take more than `bytes`. The ids that went.
  [[nodiscard]] sbx::Result<std::vector<std::string>> prune(std::int64_t most, std::int64_t bytes);

 private:
  explicit History(store::Database database) : database_(std::move(database)) {}
  struct Totals {
    std::int64_t requests = 0;
    std::int64_t bytes = 0;  // of artifacts
  };
  [[nodiscard]] sbx::Result<void> make_tables();
  [[nodiscard]] sbx::Result<std::optional<std::int64_t>> put(const Entry& entry);
  [[nodiscard]] sbx::Result<bool> insert(const Entry& entry);
  [[nodiscard]] sbx::Result<bool> update(const Entry& entry, std::int64_t bytes_before);
  [[nodiscard]] sbx::Result<Totals> count();
  void forget_totals_after_a_rollback();
  [[nodiscard]] sbx::Result<std::optional<std::int64_t>> stored_bytes(const std::string& id);
  [[nodiscard]] sbx::Result<std::vector<std::string>> remove_oldest(Totals& total,
                                                                    std::int64_t most,
                                                                    std::int64_t bytes);

  store::Database database_;
  // Kept from the first is_over() on, as counting reads the whole table; void after a rollback.
  std::optional<Totals> totals_{};
  std::uint64_t rollbacks_ = 0;  // of the database, that totals_ knows of
};

}  // namespace agentd::history
