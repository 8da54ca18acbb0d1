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
  auto job = [&book = book_, id = std::move(id), actual = std::move(actual)] {
    return book.settle(id, actual);
  };
  auto result = co_await pool_.run(job);
  co_return result;
}

Task<Result<void>> SqliteLedger::release(std::string id, std::string reason) {
  auto job = [&book = book_, id = std::move(id), reason = std::move(reason)] {
    return book.release(id, reason);
  };
  auto result = co_await pool_.run(job);
  co_return result;
}

Task<Result<int>> SqliteLedger::release_dead_owners() {
  auto job = [&book = book_] { return book.release_dead_owners(); };
  auto result = co_await pool_.run(job);
  co_return result;
}

Task<Result<Balance>> SqliteLedger::balance(std::string account) {
  auto job = [&book = book_, account = std::move(account)] { return book.balance(account); };
  auto result = co_await pool_.run(job);
  co_return result;
}

}  // namespace agentd::ledger
