// Ledger: what may still be spent, across requests, processes and crashes.
//
// An account has a cap and a unit (tokens, micro-dollars, milliseconds of sandbox). Before money or
// time is spent its true upper bound is reserved, on all accounts that it touches at once or on
// none; afterwards the reservation is settled to the real figure, or released. Always, in every
// process:   settled + reserved ≤ cap.
//
// Every call is one transaction and idempotent by the reservation's id. The embedded ledger is
// SQLite (book.h, sqlite_ledger.h); this interface is what another one would implement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/async/task.h"
#include "runtime/base/result.h"

namespace agentd::ledger {

struct Line {
  std::string account;      // "request/<id>/tokens", "day/2024-05-01/cost"
  std::int64_t amount = 0;  // ≥ 0
  std::int64_t cap = 0;     // the account's, as configured now
};

struct Reservation {
  std::string id;
  std::vector<Line> lines;  // each account once
  // True: on the disk before it is granted. For what costs real money: the record must not be lost
  // when the charge is not.
  bool durable = false;
};

// What became of a request to reserve. A refusal leaves no trace.
struct Grant {
  bool granted = false;
  std::string account{};       // refused: the first one without room,
  std::int64_t available = 0;  // and what it has left
  bool ahead = false;          // what was asked for ahead is granted too
};

struct Actual {
  std::string account;
  std::int64_t amount = 0;
};

struct Settlement {
  struct Line {
    std::string account;
    std::int64_t billed = 0;
    bool flagged = false;  // the figure was negative or above the reservation: billed as reserved
  };
  std::vector<Line> lines{};
};

struct Balance {
  std::int64_t cap = 0;
  std::int64_t settled = 0;
  std::int64_t reserved = 0;
};

class Ledger {
 public:
  virtual ~Ledger() = default;

  // An Error means that nothing is known to be reserved: do not spend. So it is when the
  // reservation was settled or released before, by the death of its owner too, and while something
  // that was settled or released cannot be written.
  // `ahead` is for what comes next: in the same transaction, where there is room for it too; it is
  // no reason to refuse the first.
  [[nodiscard]] virtual sbx::async::Task<sbx::Result<Grant>> reserve(
      Reservation reservation, std::optional<Reservation> ahead) = 0;
  // Is not waited for; what is asked of the ledger after it comes after it, and a reservation that
  // was granted after it tells that it is committed. Accounts of the reservation that `actual` does
  // not name are billed as reserved. A reservation that is settled or released already stays as it
  // is. A failure is logged, and the reservation stands until it is made up for, by the next call
  // or by make_up(): nothing is spent without a record.
  virtual void settle(std::string id, std::vector<Actual> actual) = 0;
  // Nothing was spent of it. As settle() otherwise.
  virtual void release(std::string id, std::string reason) = 0;
  // Waits for what was settled and released so far, and tries once more what could not be written.
  // False: some of it still cannot be. Does not wait where everything is written.
  [[nodiscard]] virtual sbx::async::Task<bool> make_up() = 0;
  // How many settlements and releases could not be written so far.
  [[nodiscard]] virtual std::size_t unwritten() const = 0;
  // Makes up, and releases what processes that are dead had reserved. How many reservations of the
  // dead that were.
  [[nodiscard]] virtual sbx::async::Task<sbx::Result<int>> release_dead_owners() = 0;
};

}  // namespace agentd::ledger
