#include "runtime/daemon/session_request.h"

#include <fmt/core.h>

#include <charconv>
#include <string>

#include "runtime/daemon/json_fields.h"

namespace sbx::daemon {
namespace {

using http::Problem;
using std::chrono::seconds;
using MaybeProblem = std::optional<Problem>;

MaybeProblem read_seconds(const JsonValue& value, seconds most, seconds& to) {
  if (value.kind != JsonKind::kInteger) {
    return wrong_type(value.key, JsonKind::kInteger, value.kind);
  }
  std::int64_t count = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [at, error] = std::from_chars(value.text.data(), end, count);
  if (error != std::errc() || at != end || count < 1) {
    return invalid_value(value.key,
                         fmt::format("{} is a number of seconds, at least 1.", value.key));
  }
  if (count > most.count()) {
    return Problem{.status = 422,
                   .code = "above_ceiling",
                   .detail = fmt::format("{} of {} is above the ceiling of {}.", value.key, count,
                                         most.count()),
                   .field = value.key,
                   .allowed = {std::to_string(most.count())}};
  }
  to = seconds(count);
  return std::nullopt;
}

// Of the limits only those that bound the workspace belong to the session: the others are each
// run's own.
MaybeProblem read_limits(const JsonValue& value, const RequestRules& rules,
                         policy::Limits& limits) {
  if (value.kind != JsonKind::kObject) {
    return wrong_type(value.key, JsonKind::kObject, value.kind);
  }
  for (const JsonValue& limit : value.items) {
    if (limit.key != "work" && limit.key != "work_inodes") {
      return unknown_field("limits." + limit.key, {"work", "work_inodes"});
    }
    if (auto problem = set_limit(limits, limit, rules.ceilings)) return problem;
  }
  return std::nullopt;
}

MaybeProblem read_member(const JsonValue& item, const RequestRules& rules,
                         const SessionTimes& times, policy::Limits& limits, SessionWish& wish) {
  if (item.key == "limits") return read_limits(item, rules, limits);
  if (item.key == "idle_seconds") return read_seconds(item, times.idle, wish.idle);
  if (item.key == "age_seconds") return read_seconds(item, times.age, wish.age);
  return unknown_field(item.key, {"limits", "idle_seconds", "age_seconds"});
}

}  // namespace

OrProblem<SessionWish> parse_session_request(std::string_view body, const RequestRules& rules,
                                             const SessionTimes& times) {
  auto parsed = parse_strict_json(body.empty() ? "{}" : body);
  if (auto* problem = std::get_if<Problem>(&parsed)) return std::move(*problem);
  const JsonValue& document = std::get<JsonValue>(parsed);
  if (document.kind != JsonKind::kObject) {
    return Problem{.status = 400,
                   .code = "wrong_type",
                   .detail = fmt::format("The body must be an object, not {}.",
                                         json_kind_name(document.kind))};
  }
  policy::Limits limits = rules.profiles.front().limits;
  rules.ceilings.apply(limits);
  SessionWish wish{.idle = times.idle, .age = times.age};
  for (const JsonValue& item : document.items) {
    if (auto problem = read_member(item, rules, times, limits, wish)) return *std::move(problem);
  }
  wish.work = limits.work;
  wish.work_inodes = limits.work_inodes;
  return wish;
}

}  // namespace sbx::daemon
