#include "agentd/loop/spending.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"

namespace agentd::loop {

using record::Charge;
using record::MicroDollars;
using sbx::async::Task;
using std::chrono::milliseconds;

namespace {

constexpr std::string_view kTokens = "tokens";
constexpr std::string_view kCost = "cost";
constexpr std::string_view kSandbox = "sandbox_ms";

Ceiling ceiling_of(const std::string& account) {
  if (account.ends_with(kTokens)) return Ceiling::kTokens;
  return account.ends_with(kCost) ? Ceiling::kCost : Ceiling::kSandboxSeconds;
}

// A usage that some reply can have had. A provider that says 0 has told nothing.
bool is_plausible(const providers::Usage& usage) {
  return usage.input_tokens > 0 && usage.output_tokens > 0;
}

}  // namespace

Spending::Spending(const Services& services, record::Record& record)
    : services_(services),
      ledger_(services.ledger),
      provider_(services.provider.info()),
      record_(record),
      deadline_(services.now() + record.budget.wall) {}

bool Spending::out_of_time() const {
  return services_.now() >= deadline_;
}

std::optional<Ceiling> Spending::spent() const {
  const record::Spent& used = record_.spent;
  const record::Budget& limits = record_.budget;
  if (used.tokens >= limits.tokens) return Ceiling::kTokens;
  if (used.cost >= limits.cost) return Ceiling::kCost;
  if (used.sandbox >= limits.sandbox) return Ceiling::kSandboxSeconds;
  if (out_of_time()) return Ceiling::kWallSeconds;
  return std::nullopt;
}

std::variant<CallPlan, Ceiling> Spending::plan_call(std::size_t prompt_bound,
                                                    int max_tokens) const {
  if (out_of_time()) return Ceiling::kWallSeconds;
  const auto prompt = static_cast<std::int64_t>(prompt_bound);
  std::int64_t reply = max_tokens;
  reply = std::min(reply, record_.budget.tokens - record_.spent.tokens - prompt);
  if (reply < std::min<std::int64_t>(kMinReplyTokens, max_tokens)) return Ceiling::kTokens;
  const auto& [input, output] = provider_.prices;
  const std::int64_t money = record_.budget.cost.value - record_.spent.cost.value -
                             record::cost_of(prompt, 0, input, output).value;
  if (output > 0) {
    reply = std::min(reply, static_cast<std::int64_t>(static_cast<double>(money) / output));
  }
  if (money < 0 || reply < std::min<std::int64_t>(kMinReplyTokens, max_tokens)) {
    return Ceiling::kCost;
  }
  return CallPlan{.max_tokens = static_cast<int>(reply),
                  .prompt_tokens = prompt,
                  .tokens = prompt + reply,
                  .cost = record::cost_of(prompt, reply, input, output)};
}

std::variant<RunPlan, Ceiling> Spending::plan_run(milliseconds wall) const {
  RunPlan plan{.wall = wall};
  const auto lower_to = [&plan](milliseconds left, Ceiling ceiling) {
    if (left >= plan.wall) return;
    plan = {.wall = left, .lowered_by = ceiling};
  };
  for (const Ceiling ceiling : {Ceiling::kSandboxSeconds, Ceiling::kWallSeconds}) {
    lower_to(left(ceiling), ceiling);
  }
  if (plan.lowered_by && plan.wall < kMinRun) return *plan.lowered_by;
  return plan;
}

milliseconds Spending::left(Ceiling ceiling) const {
  if (ceiling == Ceiling::kSandboxSeconds) return record_.budget.sandbox - record_.spent.sandbox;
  return std::chrono::duration_cast<milliseconds>(deadline_ - services_.now());
}

std::string Spending::too_little(Ceiling ceiling) const {
  const milliseconds there = left(ceiling);
  if (there <= milliseconds(0)) return {};
  const auto seconds = [](milliseconds time) { return static_cast<double>(time.count()) / 1000; };
  return fmt::format("{:g} s are left, and a run needs at least {:g} s", seconds(there),
                     seconds(kMinRun));
}

std::string Spending::account(std::string_view unit) const {
  std::string name = "request/";
  name += record_.id;
  name += '/';
  name += unit;
  return name;
}

std::string Spending::new_id() {
  return account(std::to_string(++reservations_));
}

ledger::Reservation Spending::run_reservation(RunPlan plan) {
  ledger::Reservation reservation{.id = new_id(), .lines = {}};
  reservation.lines = {{account(kSandbox), plan.wall.count(), record_.budget.sandbox.count()}};
  return reservation;
}

std::optional<Event> Spending::refusal_of(const sbx::Result<ledger::Grant>& grant) const {
  if (!grant) {
    sbx::log::error("a reservation failed",
                    {{"request", record_.id}, {"error", to_string(grant.error())}});
    return Event{.kind = Event::Kind::kLedgerFailed};
  }
  if (grant->granted) return std::nullopt;
  return Event{.kind = Event::Kind::kCeilingReached, .ceiling = ceiling_of(grant->account)};
}

Task<std::optional<Event>> Spending::reserve_call(CallPlan plan, std::optional<RunPlan> run) {
  ledger::Reservation reservation{.id = new_id(), .lines = {}};
  reservation.lines = {{account(kTokens), plan.tokens, record_.budget.tokens},
                       {account(kCost), plan.cost.value, record_.budget.cost.value}};
  reservation.durable = !provider_.replayed && plan.cost.value > 0;
  reservation_ = reservation.id;
  std::optional<ledger::Reservation> with_it;
  if (run && !ahead_) with_it = run_reservation(*run);
  const std::string its_id = with_it ? with_it->id : std::string();
  const auto grant = co_await ledger_.reserve(std::move(reservation), std::move(with_it));
  if (grant && grant->ahead) ahead_ = Ahead{its_id, run->wall};
  co_return refusal_of(grant);
}

Task<std::optional<Event>> Spending::reserve_run(RunPlan plan) {
  // What the model's reply cost comes first: no run comes of a charge that cannot be written.
  // Recorded replies cost nothing that could be lost.
  if (!provider_.replayed) {
    const bool written = co_await ledger_.make_up();
    if (!written) co_return Event{.kind = Event::Kind::kLedgerFailed};
  }
  if (ahead_ && ahead_->wall >= plan.wall) {
    reservation_ = std::exchange(ahead_, std::nullopt)->reservation;
    co_return std::nullopt;
  }
  release_ahead();
  ledger::Reservation reservation = run_reservation(plan);
  reservation_ = reservation.id;
  const auto grant = co_await ledger_.reserve(std::move(reservation), std::nullopt);
  co_return refusal_of(grant);
}

Charge Spending::settle_call(CallPlan plan, std::optional<providers::Usage> usage) {
  Charge charge{.input_tokens = plan.prompt_tokens,
                .output_tokens = plan.max_tokens,
                .cost = plan.cost,
                .estimated = true,
                .flagged = usage.has_value()};
  const auto& [input_price, output_price] = provider_.prices;
  if (usage && is_plausible(*usage) && usage->input_tokens + usage->output_tokens <= plan.tokens) {
    const MicroDollars cost =
        record::cost_of(usage->input_tokens, usage->output_tokens, input_price, output_price);
    // A longer reply than was allowed can cost more than was reserved without having more tokens.
    if (cost <= plan.cost) {
      charge = {usage->input_tokens, usage->output_tokens, cost, false, false};
    }
  }
  std::vector<ledger::Actual> actual;
  actual.push_back({account(kTokens), charge.input_tokens + charge.output_tokens});
  actual.push_back({account(kCost), charge.cost.value});
  ledger_.settle(reservation_, std::move(actual));
  record_.spent.tokens += charge.input_tokens + charge.output_tokens;
  record_.spent.cost += charge.cost;
  record_.spent.estimated = record_.spent.estimated || charge.estimated;
  return charge;
}

void Spending::settle_run(RunPlan plan, milliseconds used) {
  // The runtime's own time limit may be passed by a little while it kills.
  const milliseconds billed = std::clamp(used, milliseconds(0), plan.wall);
  std::vector<ledger::Actual> actual;
  actual.push_back({account(kSandbox), billed.count()});
  ledger_.settle(reservation_, std::move(actual));
  record_.spent.sandbox += billed;
}

void Spending::release(std::string reason) {
  ledger_.release(reservation_, std::move(reason));
}

void Spending::release_ahead() {
  if (ahead_)
    ledger_.release(std::exchange(ahead_, std::nullopt)->reservation, "no run came of it");
}

}  // namespace agentd::loop
