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
  // Of the ceiling that plan_run() names: how much is left that is too little for a run. Empty:
  // nothing is.
  [[nodiscard]] std::string too_little(Ceiling ceiling) const;

  // nullopt: reserved. Otherwise what stands in the way: kCeilingReached or kLedgerFailed. With
  // `run`, the run that the reply is likely to bring is reserved with the call, which spares a wait
  // for the ledger: reserve_run() takes that one if it is enough.
  [[nodiscard]] sbx::async::Task<std::optional<Event>> reserve_call(CallPlan plan,
                                                                    std::optional<RunPlan> run);
  [[nodiscard]] sbx::async::Task<std::optional<Event>> reserve_run(RunPlan plan);

  // Settles what was reserved last; the ledger is not waited for. `usage` as the provider told it,
  // if it did.
  [[nodiscard]] record::Charge settle_call(CallPlan plan, std::optional<providers::Usage> usage);
  void settle_run(RunPlan plan, std::chrono::milliseconds used);
  // Nothing was spent of it.
  void release(std::string reason);
  // At the end: what was reserved with a call for a run that did not come.
  void release_ahead();

 private:
  [[nodiscard]] std::chrono::milliseconds left(Ceiling ceiling) const;
  [[nodiscard]] std::string account(std::string_view unit) const;
  [[nodiscard]] std::string new_id();
  [[nodiscard]] ledger::Reservation run_reservation(RunPlan plan);
  [[nodiscard]] std::optional<Event> refusal_of(const sbx::Result<ledger::Grant>& grant) const;

  const Services& services_;
  ledger::Ledger& ledger_;
  const providers::ProviderInfo& provider_;
  record::Record& record_;
  sbx::async::Deadline deadline_;
  std::string reservation_;  // the last one
  struct Ahead {
    std::string reservation;
    std::chrono::milliseconds wall{0};
  };
  std::optional<Ahead> ahead_;
  int reservations_ = 0;
};

}  // namespace agentd::loop
