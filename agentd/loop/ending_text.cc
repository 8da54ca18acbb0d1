#include "agentd/loop/ending_text.h"

#include <fmt/core.h>

namespace agentd::loop {
namespace {

using record::Record;

std::string last_error(const Record& record) {
  if (record.attempts.empty() || !record.attempts.back().error) return {};
  return record.attempts.back().error->detail;
}

double seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

// In dollars, to the last digit that is not 0: a budget may be smaller than a cent.
std::string whole_amount(record::MicroDollars amount) {
  std::string text = fmt::format("{:.6f}", dollars(amount));
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// `detail`: what is left where it is not all used.
std::string ceiling_text(const Record& record, std::string_view detail) {
  const record::Budget& budget = record.budget;
  const bool tools = record.mode == record::Mode::kTools;
  switch (record.state.ending.ceiling.value_or(Ceiling::kAttempts)) {
    case Ceiling::kAttempts:
      if (tools) {
        return fmt::format("all {} steps were used without an answer", budget.attempts);
      }
      return fmt::format("all {} attempts were used; the last one failed: {}", budget.attempts,
                         last_error(record));
    case Ceiling::kTokens:
      return fmt::format("the budget of {} tokens leaves no room for another model call",
                         budget.tokens);
    case Ceiling::kCost:
      return fmt::format("the budget of ${} leaves no room for another model call",
                         whole_amount(budget.cost));
    case Ceiling::kSandboxSeconds:
      if (!detail.empty()) {
        return fmt::format("of the budget of {:g} seconds in the sandbox {}",
                           seconds(budget.sandbox), detail);
      }
      return fmt::format("the budget of {:g} seconds in the sandbox is used up",
                         seconds(budget.sandbox));
    case Ceiling::kWallSeconds:
      if (!detail.empty()) {
        return fmt::format("of the request's {:g} seconds {}", seconds(budget.wall), detail);
      }
      return fmt::format("the request took longer than its {:g} seconds", seconds(budget.wall));
  }
  return {};
}

constexpr std::string_view kFix = ". Fix: ";

}  // namespace

std::string with_fix(std::string detail, std::string_view fix) {
  if (!fix.empty()) detail.append(kFix).append(fix);
  return detail;
}

void set_reason(Record& record, std::string_view detail, std::string_view fix) {
  record.reason_text = ending_text(record, detail);
  const bool said = !fix.empty() && record.reason_text.ends_with(with_fix({}, fix));
  record.reason_fix = said ? fix : std::string_view();
}

std::string ending_text(const Record& record, std::string_view detail) {
  const std::string said = detail.empty() ? last_error(record) : std::string(detail);
  switch (record.state.ending.reason) {
    case Reason::kPassed:
      return "the program succeeded";
    case Reason::kCeiling:
      return ceiling_text(record, detail);
    case Reason::kTimeout:
      return "the program ran into its time limit, which held: " + said;
    case Reason::kSecurity:
      return "the program made a call that only an attack makes, and was ended: " + said;
    case Reason::kResource:
      return "the program ran out of its resources again after a repair: " + said;
    case Reason::kProvider:
      return "the model gave no reply: " + said;
    case Reason::kCancelled:
      return "it was cancelled";
    case Reason::kSandbox:
      return "the sandbox failed: " + said;
    case Reason::kLedger:
      return "a charge could not be put on record, so nothing more was spent";
    case Reason::kInternal:
      return "an error of agentd's own";
  }
  return {};
}

}  // namespace agentd::loop
