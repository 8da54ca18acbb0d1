#include "agentd/ledger/sqlite_ledger.h"

#include <utility>

#include "runtime/base/log.h"

namespace agentd::ledger {

using sbx::Result;
using sbx::async::Task;
using store::Durability;

Task<Result<Grant>> SqliteLedger::reserve(Reservation reservation,
                                          std::optional<Reservation> ahead) {
  const Durability durability = reservation.durable ? Durability::kPower : Durability::kProcess;
  auto job = [&book = book_, reservation = std::move(reservation), ahead = std::move(ahead)] {
    return book.reserve(reservation, ahead ? &*ahead : nullptr);
  };
  auto result = co_await queue_.write(job, durability);
  co_return result;
}

void SqliteLedger::settle(std::string id, std::vector<Actual> actual) {
  auto job = [&book = book_, id, actual] { return book.settle(id, actual); };
  auto done = [this, id, actual](const Result<Settlement>& settled) {
    if (settled) return;
    sbx::log::error("a reservation could not be settled",
                    {{"reservation", id}, {"error", to_string(settled.error())}});
    if (settled.error().code != sbx::ErrorCode::kInvalid) unsettled_.emplace_back(id, actual);
  };
  queue_.give(std::move(job), std::move(done));
}

void SqliteLedger::settle_what_failed() {
  // Those that fail again are kept again.
  for (auto& [id, actual] : std::exchange(unsettled_, {})) settle(id, std::move(actual));
}

void SqliteLedger::release(std::string id, std::string reason) {
  auto job = [&book = book_, id, reason = std::move(reason)] { return book.release(id, reason); };
  auto done = [id](const Result<void>& released) {
    if (released) return;
    sbx::log::error("a reservation could not be released",
                    {{"reservation", id}, {"error", to_string(released.error())}});
  };
  queue_.give(std::move(job), std::move(done));
}

Task<Result<int>> SqliteLedger::release_dead_owners() {
  settle_what_failed();
  auto job = [&book = book_] { return book.release_dead_owners(); };
  auto result = co_await queue_.write(job);
  co_return result;
}

}  // namespace agentd::ledger
