// WatchedLedger: a ledger that grants nothing while the place that it writes to is gone. What was
// granted before is settled there all the same, for the case that the place comes back.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agentd/ledger/ledger.h"

namespace agentd::service {

class WatchedLedger final : public ledger::Ledger {
 public:
  // `ledger` is borrowed and outlives it. `check` tells whether the place is there.
  WatchedLedger(ledger::Ledger& ledger, std::function<sbx::Result<void>()> check)
      : ledger_(ledger), check_(std::move(check)) {}

  // SECURITY: what would be lost is not spent.
  [[nodiscard]] sbx::async::Task<sbx::Result<ledger::Grant>> reserve(
      ledger::Reservation reservation, std::optional<ledger::Reservation> ahead) override {
    if (auto there = check_(); !there) co_return std::move(there).error();
    auto grant = co_await ledger_.reserve(std::move(reservation), std::move(ahead));
    co_return grant;
  }
  void settle(std::string id, std::vector<ledger::Actual> actual) override {
    ledger_.settle(std::move(id), std::move(actual));
  }
  void release(std::string id, std::string reason) override {
    ledger_.release(std::move(id), std::move(reason));
  }
  [[nodiscard]] sbx::async::Task<bool> make_up() override { return ledger_.make_up(); }
  [[nodiscard]] std::size_t unwritten() const override { return ledger_.unwritten(); }
  [[nodiscard]] sbx::async::Task<sbx::Result<int>> release_dead_owners() override {
    return ledger_.release_dead_owners();
  }

 private:
  ledger::Ledger& ledger_;
  std::function<sbx::Result<void>()> check_;
};

}  // namespace agentd::service
