#include "runtime/daemon/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace sbx::daemon {
namespace {

using http::Problem;

constexpr std::size_t kMaxLimitText = 64;  // "16777216M" and the like

bool may_be(policy::LimitKind limit, const JsonValue& value) {
  switch (limit) {
    case policy::LimitKind::kSeconds:
    case policy::LimitKind::kCpus:
      return value.kind == JsonKind::kInteger || value.kind == JsonKind::kFloat;
    case policy::LimitKind::kBytes:
      return value.kind == JsonKind::kInteger || value.kind == JsonKind::kString;
    case policy::LimitKind::kCount:
      return value.kind == JsonKind::kInteger;
    case policy::LimitKind::kBool:
      return value.kind == JsonKind::kBool;
    case policy::LimitKind::kNetwork:
      return value.kind == JsonKind::kString;
  }
  return false;
}

std::string_view wanted(policy::LimitKind limit) {
  switch (limit) {
    case policy::LimitKind::kSeconds:
    case policy::LimitKind::kCpus:
      return "a number";
    case policy::LimitKind::kBytes:
      return R"(a whole number of bytes, or a string like "64M")";
    case policy::LimitKind::kCount:
      return "a whole number";
    case policy::LimitKind::kBool:
      return "true or false";
    case policy::LimitKind::kNetwork:
      return "a string";
  }
  return {};
}

// "a number" alone would not say what is wrong with 1.5, 1e9 or 2^64.
std::string_view given(JsonKind kind) {
  return kind == JsonKind::kFloat ? "a number with a fraction, an exponent or too many digits"
                                  : json_kind_name(kind);
}

const policy::LimitField* find_limit(std::string_view name) {
  const auto& fields = policy::limit_fields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const policy::LimitField& f) { return f.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

std::vector<std::string> limit_names() {
  std::vector<std::string> names;
  for (const policy::LimitField& field : policy::limit_fields()) names.emplace_back(field.name);
  return names;
}

}  // namespace

std::optional<Problem> set_limit(policy::Limits& limits, const JsonValue& value,
                                 const Ceilings& ceilings) {
  const std::string field = "limits." + value.key;
  const policy::LimitField* const known = find_limit(value.key);
  if (known == nullptr) return unknown_field(field, limit_names());
  const bool none = value.kind == JsonKind::kNull && value.key == "cpu_seconds";
  if (!none && !may_be(known->kind, value)) {
    return Problem{.status = 400,
                   .code = "wrong_type",
                   .detail = fmt::format("{} ({}) must be {}, not {}.", field, known->help,
                                         wanted(known->kind), given(value.kind)),
                   .field = field};
  }
  if (value.text.size() > kMaxLimitText) return invalid_value(field, "The value is too long.");
  if (auto set = policy::set_limit(limits, value.key, none ? "none" : value.text); !set) {
    return invalid_value(field, set.error().detail);
  }
  if (!ceilings.is_above(limits, value.key)) return std::nullopt;
  const std::string most = ceilings.text(value.key);
  return Problem{.status = 422,
                 .code = "above_ceiling",
                 .detail = fmt::format("{} of {} is above the ceiling of {}.", field,
                                       policy::limit_text(limits, value.key), most),
                 .field = field,
                 .allowed = {most}};
}

}  // namespace sbx::daemon
