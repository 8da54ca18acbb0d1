#include "runtime/policy/seccomp_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

namespace sbx::policy {
namespace {

constexpr std::string_view kNoSuchCall = "'{}' is not a system call of any supported architecture";

std::optional<Tier> tier_from_name(std::string_view name) {
  if (name == "allow") return Tier::kAllow;
  if (name == "quiet") return Tier::kQuiet;
  if (name == "deny") return Tier::kDeny;
  if (name == "hostile") return Tier::kHostile;
  if (name == "filtered") return Tier::kFiltered;
  return std::nullopt;
}

// What init decides by an argument, of one call each.
std::optional<std::uint16_t> decided_by_init(std::string_view otherwise, std::string_view call) {
  if (otherwise == "record_locks" && call == "fcntl") return kActionRecordLocks;
  if (otherwise == "flocks" && call == "flock") return kActionFlocks;
  if (otherwise == "hostile_namespaces" && call == "clone") return kActionNamespaces;
  return std::nullopt;
}

// Reads policy/seccomp/*.toml, one file after the other, into one RuleSet.
class RuleParser {
 public:
  Result<void> parse_file(const SeccompSource& source) {
    origin_ = source.first;
    SBX_ASSIGN(const TomlValue root, parse_toml(source.second, origin_));
    SBX_TRY(check_keys(origin_, root, {"tier", "group", "call"}));
    SBX_ASSIGN(const std::string tier_name, required_string(origin_, root, "tier"));
    const auto tier = tier_from_name(tier_name);
    if (!tier) {
      return toml_error(origin_, *root.find("tier"),
                        "must be allow, filtered, quiet, deny or hostile");
    }
    const std::string_view section = *tier == Tier::kFiltered ? "call" : "group";
    SBX_TRY(check_keys(origin_, root, {"tier", section}));
    const TomlValue* entries = root.find(section);
    if (entries == nullptr) return {};
    SBX_TRY(check_kind(origin_, *entries, TomlKind::kTable));
    for (const TomlValue& entry : entries->items) {
      SBX_TRY(check_kind(origin_, entry, TomlKind::kTable));
      SBX_TRY(*tier == Tier::kFiltered ? add_filtered(entry) : add_group(entry, *tier));
    }
    return {};
  }

  [[nodiscard]] RuleSet take() && { return std::move(rules_); }

 private:
  Result<void> add_group(const TomlValue& group, Tier tier) {
    const bool has_errno = tier == Tier::kQuiet || tier == Tier::kDeny;
    if (tier == Tier::kDeny) {
      SBX_TRY(check_keys(origin_, group, {"why", "risk", "errno", "calls"}));
    } else {
      SBX_TRY(has_errno ? check_keys(origin_, group, {"why", "errno", "calls"})
                        : check_keys(origin_, group, {"why", "calls"}));
    }
    SBX_TRY(required_string(origin_, group, "why"));
    CallRule rule{tier, EPERM, {}, group.key, {}};
    if (group.find("risk") != nullptr) {
      SBX_ASSIGN(rule.risk, required_string(origin_, group, "risk"));
    }
    if (tier == Tier::kHostile) rule.answer = kActionHostile;
    if (has_errno) {
      SBX_ASSIGN(rule.answer, read_errno(group, "errno", tier == Tier::kQuiet));
    }
    const TomlValue* calls = group.find("calls");
    if (calls == nullptr) return toml_error(origin_, group, "key 'calls' is missing");
    SBX_ASSIGN(const auto names, string_list(origin_, *calls));
    auto& members = rules_.groups[group.key];
    if (!members.empty()) return toml_error(origin_, group, "a group of this name exists already");
    for (std::size_t i = 0; i < names.size(); ++i) {
      SBX_TRY(add_call(calls->items[i], names[i], rule));
    }
    members = names;
    return {};
  }

  Result<void> add_filtered(const TomlValue& call) {
    SBX_TRY(check_keys(origin_, call, {"why", "otherwise", "allow"}));
    SBX_TRY(required_string(origin_, call, "why"));
    CallRule rule{Tier::kFiltered, EPERM, {}, "arguments", {}};
    SBX_ASSIGN(const std::string otherwise, required_string(origin_, call, "otherwise"));
    if (otherwise == "hostile") {
      rule.answer = kActionHostile;
    } else if (const auto by_argument = decided_by_init(otherwise, call.key)) {
      rule.answer = *by_argument;
    } else {
      SBX_ASSIGN(rule.answer, read_errno(call, "otherwise", false));
    }
    const TomlValue* cases = call.find("allow");
    if (cases == nullptr) return toml_error(origin_, call, "key 'allow' is missing");
    SBX_TRY(check_kind(origin_, *cases, TomlKind::kArray));
    for (const TomlValue& each : cases->items) {
      SBX_ASSIGN(auto tests, read_case(each));
      rule.cases.push_back(std::move(tests));
    }
    if (rule.cases.empty()) return toml_error(origin_, *cases, "must have a case");
    return add_call(call, call.key, rule);
  }

  Result<void> add_call(const TomlValue& where, const std::string& name, const CallRule& rule) {
    if (!exists_anywhere(name)) {
      return toml_error(origin_, where, fmt::format(fmt::runtime(kNoSuchCall), name));
    }
    const auto [entry, added] = rules_.calls.emplace(name, rule);
    if (added) return {};
    return toml_error(origin_, where,
                      fmt::format("'{}' is listed already, in '{}'", name, entry->second.group));
  }

  Result<std::uint16_t> read_errno(const TomlValue& table, std::string_view key, bool may_succeed) {
    SBX_ASSIGN(const std::string name, required_string(origin_, table, key));
    const auto number = errno_value(name);
    if (!number || (*number == 0 && !may_succeed)) {
      return toml_error(origin_, *table.find(key), fmt::format("'{}' is not an errno", name));
    }
    return *number;
  }

  // {arg0 = ["A", "B"], arg2 = {mask = ["C"], any = [0]}}
  Result<ArgumentCase> read_case(const TomlValue& table) {
    SBX_TRY(check_kind(origin_, table, TomlKind::kTable));
    SBX_TRY(check_keys(origin_, table, {"arg0", "arg1", "arg2", "arg3", "arg4", "arg5"}));
    ArgumentCase tests;
    for (const TomlValue& item : table.items) {
      ArgumentTest test;
      test.argument = static_cast<std::uint32_t>(item.key.back() - '0');
      const TomlValue* values = &item;
      if (item.kind == TomlKind::kTable) {
        SBX_TRY(check_keys(origin_, item, {"mask", "bits", "any"}));
        SBX_ASSIGN(test.mask, read_mask(item));
        values = item.find("any");
        if (values == nullptr) return toml_error(origin_, item, "key 'any' is missing");
      }
      SBX_ASSIGN(test.values, read_constants(*values));
      SBX_TRY(check_values(*values, test));
      tests.push_back(std::move(test));
    }
    if (tests.empty()) return toml_error(origin_, table, "must test an argument");
    return tests;
  }

  // A value with a bit outside the mask would never match: a mistake.
  Result<void> check_values(const TomlValue& where, const ArgumentTest& test) {
    if (test.values.empty()) return toml_error(origin_, where, "must have a value");
    const bool fits = std::all_of(test.values.begin(), test.values.end(),
                                  [&](std::uint64_t value) { return (value & ~test.mask) == 0; });
    if (!fits) return toml_error(origin_, where, "has a value outside the mask");
    return {};
  }

  // `bits = 64` for pointers; `mask = […]`, or-ed, for fields; else the low 32 bits, which is all
  // that the kernel looks at in an int.
  Result<std::uint64_t> read_mask(const TomlValue& table) {
    const TomlValue* bits = table.find("bits");
    const TomlValue* mask = table.find("mask");
    if ((bits == nullptr) == (mask == nullptr)) {
      return toml_error(origin_, table, "needs either 'bits' or 'mask'");
    }
    if (bits != nullptr) {
      if (bits->kind != TomlKind::kInteger || bits->integer != 64) {
        return toml_error(origin_, *bits, "must be 64");
      }
      return ~std::uint64_t{0};
    }
    SBX_ASSIGN(const auto parts, read_constants(*mask));
    std::uint64_t all = 0;
    for (const std::uint64_t part : parts) all |= part;
    if (all == 0) return toml_error(origin_, *mask, "must not be zero");
    return all;
  }

  Result<std::vector<std::uint64_t>> read_constants(const TomlValue& array) {
    SBX_TRY(check_kind(origin_, array, TomlKind::kArray));
    std::vector<std::uint64_t> values;
    for (const TomlValue& item : array.items) {
      if (item.kind == TomlKind::kInteger && item.integer >= 0) {
        values.push_back(static_cast<std::uint64_t>(item.integer));
        continue;
      }
      const auto value = item.kind == TomlKind::kString ? constant_value(item.text) : std::nullopt;
      if (!value) {
        return toml_error(origin_, item,
                          fmt::format("'{}' is neither a number nor a known constant", item.text));
      }
      values.push_back(*value);
    }
    return values;
  }

  std::string_view origin_;
  RuleSet rules_;
};

// Lays one [seccomp] table of a profile over the rules.
class ProfileOverlay {
  static constexpr const char* kProfile = "profile";  // the group of what the profile listed

 public:
  ProfileOverlay(RuleSet& rules, std::string_view origin) : rules_(rules), origin_(origin) {}

  Result<void> apply(const TomlValue& seccomp) {
    SBX_TRY(check_kind(origin_, seccomp, TomlKind::kTable));
    SBX_TRY(check_keys(origin_, seccomp, {"allow", "deny", "hostile"}));
    if (const auto* allow = seccomp.find("allow")) SBX_TRY(apply_allow(*allow));
    if (const auto* deny = seccomp.find("deny")) SBX_TRY(apply_deny(*deny));
    if (const auto* hostile = seccomp.find("hostile")) SBX_TRY(apply_hostile(*hostile));
    return {};
  }

  [[nodiscard]] Loosening take() && {
    std::sort(found_.loosened.begin(), found_.loosened.end());
    std::sort(found_.opened.begin(), found_.opened.end());
    return std::move(found_);
  }

 private:
  Result<void> apply_allow(const TomlValue& list) {
    SBX_ASSIGN(const auto names, string_list(origin_, list));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const TomlValue& where = list.items[i];
      if (!names[i].starts_with('@')) {
        SBX_TRY(replace(where, names[i], {Tier::kAllow, EPERM, {}, kProfile, {}}));
        continue;
      }
      const auto group = rules_.groups.find(std::string_view(names[i]).substr(1));
      if (group == rules_.groups.end()) {
        return toml_error(origin_, where, fmt::format("'{}' is not a group", names[i]));
      }
      for (const std::string& call : group->second) {
        SBX_TRY(refuse_hostile_member(where, names[i], call));
        SBX_TRY(replace(where, call, {Tier::kAllow, EPERM, {}, kProfile, {}}));
      }
    }
    return {};
  }

  // SECURITY: a group's members change with the policy, so a group must never open what is hostile.
  Result<void> refuse_hostile_member(const TomlValue& where, const std::string& group,
                                     const std::string& call) {
    if (rules_.calls.find(call)->second.tier != Tier::kHostile) return {};
    return toml_error(origin_, where,
                      fmt::format("'{}' is hostile: name its calls one by one", group));
  }

  Result<void> apply_deny(const TomlValue& table) {
    SBX_TRY(check_kind(origin_, table, TomlKind::kTable));
    // Without these the program could not even be started, or could never end.
    constexpr std::string_view kNeeded[] = {"execve", "close_range", "exit", "exit_group", "write"};
    for (const TomlValue& item : table.items) {
      SBX_TRY(check_kind(origin_, item, TomlKind::kString));
      const auto number = errno_value(item.text);
      if (!number || *number == 0) {
        return toml_error(origin_, item, fmt::format("'{}' is not an errno", item.text));
      }
      if (std::find(std::begin(kNeeded), std::end(kNeeded), item.key) != std::end(kNeeded)) {
        return toml_error(origin_, item, "no program runs without this call");
      }
      SBX_TRY(replace(item, item.key, {Tier::kDeny, *number, {}, kProfile, {}}));
    }
    return {};
  }

  Result<void> apply_hostile(const TomlValue& list) {
    SBX_ASSIGN(const auto names, string_list(origin_, list));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto rule = rules_.calls.find(names[i]);
      const bool is_open = rule != rules_.calls.end() && rule->second.tier == Tier::kAllow;
      if (is_open && rule->second.group != kProfile) {
        return toml_error(origin_, list.items[i],
                          fmt::format("'{}' is allowed by default: use deny", names[i]));
      }
      SBX_TRY(replace(list.items[i], names[i], {Tier::kHostile, kActionHostile, {}, kProfile, {}}));
    }
    return {};
  }

  Result<void> replace(const TomlValue& where, const std::string& name, CallRule rule) {
    if (!exists_anywhere(name)) {
      return toml_error(origin_, where, fmt::format(fmt::runtime(kNoSuchCall), name));
    }
    const auto old = rules_.calls.find(name);
    const bool is_known = old != rules_.calls.end();
    if (is_known && old->second.group == kProfile) {
      return toml_error(origin_, where, fmt::format("'{}' is listed twice", name));
    }
    // A filtered call may hold a hostile remainder (clone with namespace flags). Which of the
    // others are dangerous is not judged here: io_uring goes past the filter, clone3 has clone's
    // flags.
    const bool was_hostile = is_known && (old->second.answer == kActionHostile ||
                                          old->second.answer == kActionNamespaces);
    const bool was_open = is_known && old->second.tier == Tier::kAllow;
    if (was_hostile && rule.answer != kActionHostile) {
      found_.loosened.push_back(name);
    } else if (rule.tier == Tier::kAllow && !was_open) {
      found_.opened.push_back(name);
    }
    rules_.calls.insert_or_assign(name, std::move(rule));
    return {};
  }

  RuleSet& rules_;
  std::string_view origin_;
  Loosening found_;
};

}  // namespace

Result<RuleSet> parse_rules(const std::vector<SeccompSource>& sources) {
  RuleParser parser;
  for (const SeccompSource& source : sources) SBX_TRY(parser.parse_file(source));
  return std::move(parser).take();
}

Result<Loosening> apply_profile(RuleSet& rules, const TomlValue& seccomp, std::string_view origin) {
  ProfileOverlay overlay(rules, origin);
  SBX_TRY(overlay.apply(seccomp));
  return std::move(overlay).take();
}

std::string loosening_text(const SeccompPolicy& policy) {
  std::string text;
  if (!policy.loosened.empty()) {
    text = fmt::format("no longer hostile: {}", fmt::join(policy.loosened, ", "));
  }
  if (!policy.opened.empty()) {
    text += fmt::format("{}opened: {}", text.empty() ? "" : "; ", fmt::join(policy.opened, ", "));
  }
  return text;
}

}  // namespace sbx::policy
