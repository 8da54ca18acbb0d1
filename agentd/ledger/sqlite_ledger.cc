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
    keep(settled.error(), [this, id, actual] { settle(id, actual); });
  };
  queue_.give(std::move(job), std::move(done));
}

void SqliteLedger::release(std::string id, std::string reason) {
  auto job = [&book = book_, id, reason] { return book.release(id, reason); };
  auto done = [this, id, reason](const Result<void>& released) {
    if (released) return;
    sbx::log::error("a reservation could not be released",
                    {{"reservation", id}, {"error", to_string(released.error())}});
    keep(released.error(), [this, id, reason] { release(id, reason); });
  };
  queue_.give(std::move(job), std::move(done));
}

// What the ledger refuses it would refuse again.
void SqliteLedger::keep(const sbx::Error& error, std::function<void()> again) {
  if (error.code != sbx::ErrorCode::kInvalid) failed_.push_back(std::move(again));
}

void SqliteLedger::make_up() {
  // Those that fail again are kept again.
  for (const auto& again : std::exchange(failed_, {})) again();
}

Task<Result<int>> SqliteLedger::release_dead_owners() {
  make_up();
  auto job = [&book = book_] { return book.release_dead_owners(); };
  auto result = co_await queue_.write(job);
  co_return result;
}

}  // namespace agentd::ledger
