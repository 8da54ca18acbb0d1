#include "agentd/ledger/sqlite_ledger.h"

#include <utility>

#include "runtime/base/log.h"

namespace agentd::ledger {

using sbx::Result;
using sbx::async::Task;
using store::Durability;

namespace {

sbx::Error earlier_one_unwritten() {
  return {.code = sbx::ErrorCode::kHost,
          .stage = "store",
          .operation = "reserve",
          .sys_errno = 0,
          .detail = "an earlier charge could not be written yet",
          .fix = "make room on the file system of the state directory"};
}

}  // namespace

// SECURITY: nothing is spent on top of a charge that is in memory alone.
Task<Result<Grant>> SqliteLedger::reserve(Reservation reservation,
                                          std::optional<Reservation> ahead) {
  if (!failed_.empty()) {
    const bool written = co_await make_up();
    if (!written) co_return earlier_one_unwritten();
  }
  const std::string id = reservation.id;
  const std::string id_ahead = ahead ? ahead->id : std::string();
  const Durability durability = reservation.durable ? Durability::kPower : Durability::kProcess;
  auto job = [&book = book_, reservation = std::move(reservation), ahead = std::move(ahead)] {
    return book.reserve(reservation, ahead ? &*ahead : nullptr);
  };
  auto result = co_await queue_.write(job, durability);
  if (!result || failed_.empty()) co_return result;
  // What was before it in the queue failed, and it did not.
  const bool written = co_await make_up();
  if (written) co_return result;
  release(id, "an earlier charge could not be written");
  if (!id_ahead.empty()) release(id_ahead, "an earlier charge could not be written");
  co_return earlier_one_unwritten();
}

void SqliteLedger::settle(std::string id, std::vector<Actual> actual) {
  auto job = [&book = book_, id, actual] { return book.settle(id, actual); };
  ++under_way_;
  auto done = [this, id, actual](const Result<Settlement>& settled) {
    --under_way_;
    if (settled) return;
    sbx::log::error("a reservation could not be settled",
                    {{"reservation", id}, {"error", to_string(settled.error())}});
    keep(settled.error(), [this, id, actual] { settle(id, actual); });
  };
  queue_.give(std::move(job), std::move(done));
}

void SqliteLedger::release(std::string id, std::string reason) {
  auto job = [&book = book_, id, reason] { return book.release(id, reason); };
  ++under_way_;
  auto done = [this, id, reason](const Result<void>& released) {
    --under_way_;
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

// The queue does first what it was given first, and tells so.
Task<void> SqliteLedger::until_tried() {
  if (under_way_ == 0) co_return;
  auto nothing = [] { return Result<void>(); };
  (void)co_await queue_.write(nothing);  // does nothing that could fail
}

Task<bool> SqliteLedger::make_up() {
  co_await until_tried();
  if (!failed_.empty()) {
    // Those that fail again are kept again.
    for (const auto& again : std::exchange(failed_, {})) again();
    co_await until_tried();
  }
  co_return failed_.empty();
}

Task<Result<int>> SqliteLedger::release_dead_owners() {
  const bool written = co_await make_up();
  if (!written) co_return earlier_one_unwritten();
  auto job = [&book = book_] { return book.release_dead_owners(); };
  auto result = co_await queue_.write(job);
  co_return result;
}

}  // namespace agentd::ledger
