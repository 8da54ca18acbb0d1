#include "runtime/policy/profile.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/base/toml.h"

namespace sbx::policy {
namespace {

constexpr std::size_t kMaxNameLength = 64;

bool is_profile_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= kMaxNameLength &&
         std::all_of(name.begin(), name.end(), fits);
}

// What TOML may hold for a limit: set_limit takes text and would accept more than the file should.
bool kind_fits(LimitKind limit, const TomlValue& value) {
  switch (limit) {
    case LimitKind::kSeconds:
      return value.kind == TomlKind::kInteger || value.kind == TomlKind::kFloat ||
             (value.kind == TomlKind::kString && value.text == "none");
    case LimitKind::kCpus:
      return value.kind == TomlKind::kInteger || value.kind == TomlKind::kFloat;
    case LimitKind::kBytes:
      return value.kind == TomlKind::kInteger || value.kind == TomlKind::kString;
    case LimitKind::kCount:
      return value.kind == TomlKind::kInteger;
    case LimitKind::kBool:
      return value.kind == TomlKind::kBool;
    case LimitKind::kNetwork:
      return value.kind == TomlKind::kString;
  }
  return false;
}

std::string_view kind_wanted(LimitKind limit) {
  switch (limit) {
    case LimitKind::kSeconds:
    case LimitKind::kCpus:
      return "must be a number";
    case LimitKind::kBytes:
      return "must be an integer or a string like \"64M\"";
    case LimitKind::kCount:
      return "must be an integer";
    case LimitKind::kBool:
      return "must be true or false";
    case LimitKind::kNetwork:
      return "must be a string";
  }
  return {};
}

Result<Limits> read_limits(const TomlValue& table, std::string_view origin) {
  SBX_TRY(check_kind(origin, table, TomlKind::kTable));
  Limits limits;
  for (const TomlValue& item : table.items) {
    const auto& fields = limit_fields();
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const LimitField& each) { return each.name == item.key; });
    if (field == fields.end()) return toml_error(origin, item, "unknown key: not a limit");
    if (!kind_fits(field->kind, item)) return toml_error(origin, item, kind_wanted(field->kind));
    if (auto set = set_limit(limits, item.key, item.text); !set) {
      return toml_error(origin, item, set.error().detail);
    }
  }
  return limits;
}

}  // namespace

Result<Policy> parse_profile(std::string_view text, std::string_view origin,
                             const std::vector<SeccompSource>& seccomp, std::uint32_t audit_arch) {
  SBX_ASSIGN(const TomlValue root, parse_toml(text, origin));
  SBX_TRY(check_keys(origin, root, {"name", "description", "limits", "seccomp"}));
  Policy policy;
  SBX_ASSIGN(policy.profile, required_string(origin, root, "name"));
  if (!is_profile_name(policy.profile)) {
    return toml_error(origin, *root.find("name"),
                      fmt::format("must be 1 to {} characters of a-z 0-9 - _", kMaxNameLength));
  }
  SBX_ASSIGN(policy.description, required_string(origin, root, "description"));
  if (const TomlValue* limits = root.find("limits")) {
    SBX_ASSIGN(policy.limits, read_limits(*limits, origin));
  }
  SBX_ASSIGN(RuleSet rules, parse_rules(seccomp));
  Loosening given;
  if (const TomlValue* overlay = root.find("seccomp")) {
    SBX_ASSIGN(given, apply_profile(rules, *overlay, origin));
  }
  SBX_ASSIGN(policy.seccomp, compile_rules(rules, audit_arch));
  policy.seccomp.loosened = std::move(given.loosened);
  policy.seccomp.opened = std::move(given.opened);
  return policy;
}

}  // namespace sbx::policy
