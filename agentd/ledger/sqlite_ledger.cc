#include "agentd/ledger/sqlite_ledger.h"

#include <utility>

namespace agentd::ledger {

using sbx::Result;
using sbx::async::Task;

Task<Result<Grant>> SqliteLedger::reserve(Reservation reservation) {
  auto job = [&book = book_, reservation = std::move(reservation)] {
    return book.reserve(reservation);
  };
  auto result = co_await pool_.run(job);
  co_return result;
}

Task<Result<Settlement>> SqliteLedger::settle(std::string id, std::vector<Actual> actual) {
  auto job = [&book = book_, id, actual] { return book.settle(id, actual); };
  auto result = co_await pool_.run(job);
  if (!result && result.error().code != sbx::ErrorCode::kInvalid) {
    unsettled_.emplace_back(std::move(id), std::move(actual));
  }
  co_return result;
}

Task<void> SqliteLedger::settle_what_failed() {
  auto failed = std::exchange(unsettled_, {});
  // Those that fail again are kept again.
  for (auto& [id, actual] : failed) {
    (void)co_await settle(std::move(id), std::move(actual));
  }
}

Task<Result<void>> SqliteLedger::release(std::string id, std::string reason) {
  auto job = [&book = book_, id = std::move(id), reason = std::move(reason)] {
    return book.release(id, reason);
  };
  auto result = co_await pool_.run(job);
  co_return result;
}

Task<Result<int>> SqliteLedger::release_dead_owners() {
  co_await settle_what_failed();
  auto job = [&book = book_] { return book.release_dead_owners(); };
  auto result = co_await pool_.run(job);
  co_return result;
}

}  // namespace agentd::ledger
