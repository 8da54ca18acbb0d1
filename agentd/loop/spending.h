// Spending: what a request has left, and its reservations in the ledger. Service: agentd.
//
// Belongs to one request and its driver; on the loop. The figures that decide are those of the
// ledger's answers; Record::spent is what was settled.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "agentd/ledger/ledger.h"
#include "agentd/loop/machine.h"
#include "agentd/loop/services.h"
#include "agentd/providers/provider.h"
#include "agentd/record/record.h"
#include "http/async/task.h"
#include "http/async/wait.h"

namespace agentd::loop {

// A reply that is allowed fewer tokens than this is not worth its prompt.
inline constexpr std::int64_t kMinReplyTokens = 256;
inline constexpr std::chrono::milliseconds kMinRun{1000};

// The bounds of one model call: all are true upper bounds.
struct CallPlan {
  int max_tokens = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t tokens = 0;
  record::MicroDollars cost{};
};

// A run's wall limit, and which ceiling lowered it below what runs are given otherwise.
struct RunPlan {
  std::chrono::milliseconds wall{0};
  std::optional<Ceiling> lowered_by{};
};

class Spending {
 public:
  // All are borrowed and outlive it. `record.budget` is set.
  Spending(const Services& services, record::Record& record);

  // The first ceiling of which nothing is left.
  [[nodiscard]] std::optional<Ceiling> spent() const;
  [[nodiscard]] sbx::async::Deadline deadline() const { return deadline_; }
  [[nodiscard]] bool out_of_time() const;

  // Fewer tokens than `max_tokens` for the reply where the budget asks for it.
  [[nodiscard]] std::variant<CallPlan, Ceiling> plan_call(std::size_t prompt_bound,
                                                          int max_tokens) const;
  [[nodiscard]] std::variant<RunPlan, Ceiling> plan_run(std::chrono::milliseconds wall) const;

  // nullopt: reserved. Otherwise what stands in the way: kCeilingReached or kLedgerFailed.
  [[nodiscard]] sbx::async::Task<std::optional<Event>> reserve_call(CallPlan plan);
  [[nodiscard]] sbx::async::Task<std::optional<Event>> reserve_run(RunPlan plan);

  // Settles what was reserved last. `usage` as the provider told it, if it did.
  [[nodiscard]] sbx::async::Task<record::Charge> settle_call(CallPlan plan,
                                                             std::optional<providers::Usage> usage);
  [[nodiscard]] sbx::async::Task<void> settle_run(RunPlan plan, std::chrono::milliseconds used);
  // Nothing was spent of it.
  [[nodiscard]] sbx::async::Task<void> release(std::string reason);

 private:
  [[nodiscard]] std::string account(std::string_view unit) const;
  [[nodiscard]] sbx::async::Task<std::optional<Event>> reserve(ledger::Reservation reservation);

  const Services& services_;
  ledger::Ledger& ledger_;
  const providers::ProviderInfo& provider_;
  record::Record& record_;
  sbx::async::Deadline deadline_;
  std::string reservation_;  // the last one
  int reservations_ = 0;
};

}  // namespace agentd::loop
