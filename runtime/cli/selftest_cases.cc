#include "runtime/cli/selftest_cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/base/escape.h"
#include "runtime/cli/selftest_tables.h"
#include "runtime/policy/layers.h"
#include "runtime/policy/seccomp_answer.h"

namespace sbx::cli {
namespace {

constexpr std::size_t kMaxTroubleText = 200;

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// The answer alone: outside nothing is counted.
bool answers_as(const Expectation& expected, const Observation& seen) {
  if (!expected.hostile_syscall.empty()) return seen.hostile_syscall == expected.hostile_syscall;
  if (!seen.answered) return false;
  if (seen.sys_errno == 0) {
    return expected.looks_right != nullptr && expected.looks_right(seen.value);
  }
  return std::find(expected.errnos.begin(), expected.errnos.end(), seen.sys_errno) !=
         expected.errnos.end();
}

// The layer that the case is about is one that this host need not have, and has not.
bool lacks_optional_layer(const AttackCase& attack, const Observation& inside) {
  const auto layer = policy::layer_from_name(attack.layer);
  return layer && !policy::layer_required(*layer) && contains(inside.lacking, attack.layer);
}

// The errno with which the policy answers a call when it denies it, 0 for none. Of clone, which is
// hostile by its flags, 0: all bits set are no command of any call.
int errno_of(const policy::SeccompPolicy& policy, std::string_view call) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  constexpr std::uint64_t kArguments[] = {kAll, kAll, kAll, kAll, kAll, kAll};
  for (std::uint32_t nr = 0; nr < policy::kSyscallTableSize; ++nr) {
    if (policy::syscall_name(policy.audit_arch, nr) != call) continue;
    const std::uint16_t answer = policy::answer_notified(policy.actions.data(), policy.audit_arch,
                                                         policy.audit_arch, nr, kArguments);
    return answer == policy::kActionHostile ? 0 : answer;
  }
  return 0;
}

// The call that the case is about, where it names one.
std::string_view call_of(const Expectation& expected) {
  return expected.hostile_syscall.empty() ? expected.counted_syscall : expected.hostile_syscall;
}

// The answer outside is another than that inside.
bool control_differs(const AttackCase& attack, const Observation& inside,
                     const Observation& control) {
  if (answers_as(attack.expected, control)) return false;
  return !inside.answered || inside.sys_errno == 0 || control.sys_errno != inside.sys_errno;
}

}  // namespace

std::span<const AttackCase> attack_cases() {
  static const std::vector<AttackCase> all = [] {
    std::vector<AttackCase> cases;
    for (const auto table :
         {system_call_cases(), view_cases(), network_cases(), setting_up_cases()}) {
      cases.insert(cases.end(), table.begin(), table.end());
    }
    return cases;
  }();
  return all;
}

std::string_view attack_class_name(AttackClass attack_class) {
  switch (attack_class) {
    case AttackClass::kSystemCalls:
      return "system calls";
    case AttackClass::kViews:
      return "views";
    case AttackClass::kNetwork:
      return "network";
    case AttackClass::kSettingUp:
      return "setting up";
    case AttackClass::kFilesOut:
      return "files out";
    case AttackClass::kKilling:
      return "killing";
    case AttackClass::kMemory:
      break;
  }
  return "memory";
}

std::string_view case_state_name(CaseState state) {
  switch (state) {
    case CaseState::kPass:
      return "pass";
    case CaseState::kFail:
      return "FAIL";
    case CaseState::kNotApplicable:
      return "n.a.";
    case CaseState::kControlFailed:
      break;
  }
  return "control failed";
}

Observation observe(const collect::Outcome& outcome) {
  Observation seen;
  if (outcome.ok()) {
    seen = parse_probe_line(outcome.stdout_bytes);
  } else if (outcome.status != collect::Status::kSecurity) {
    seen.trouble = fmt::format("status {}", collect::status_name(outcome.status));
    if (outcome.error) {
      seen.trouble += fmt::format(": {} (errno {}) {}", outcome.error->step,
                                  outcome.error->sys_errno, outcome.error->detail);
    }
  }
  for (const collect::Denial& denial : outcome.denials) {
    const bool hostile = denial.tier == "hostile";
    if (!hostile) seen.denied.push_back(denial.syscall);
    if (hostile && outcome.status == collect::Status::kSecurity) {
      seen.hostile_syscall = denial.syscall;
    }
  }
  for (const policy::LayerReport& layer : outcome.layers) {
    if (layer.state != policy::LayerState::kHeld) seen.lacking.push_back(layer.name);
  }
  return seen;
}

Observation parse_probe_line(std::string_view line) {
  Observation seen;
  const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
  const bool whole = parsed.is_object() && parsed.contains("errno") && parsed.contains("value") &&
                     parsed["errno"].is_number_integer() && parsed["value"].is_string();
  if (!whole) {
    seen.trouble =
        line.empty() ? "the probe said nothing" : std::string(line.substr(0, kMaxTroubleText));
    return seen;
  }
  seen.answered = true;
  seen.sys_errno = parsed["errno"].get<int>();
  seen.value = parsed["value"].get<std::string>();
  return seen;
}

bool matches(const Expectation& expected, const Observation& seen) {
  if (!answers_as(expected, seen)) return false;
  return expected.counted_syscall.empty() || contains(seen.denied, expected.counted_syscall);
}

bool stopped_by_policy(const AttackCase& attack, const Observation& seen,
                       const policy::SeccompPolicy& policy) {
  const std::string_view call = call_of(attack.expected);
  if (!seen.hostile_syscall.empty()) return call.empty() || seen.hostile_syscall == call;
  if (!seen.answered || seen.sys_errno == 0) return false;
  return std::any_of(seen.denied.begin(), seen.denied.end(), [&](const std::string& denied) {
    return (call.empty() || denied == call) && errno_of(policy, denied) == seen.sys_errno;
  });
}

CaseState judge(const AttackCase& attack, const Observation& inside,
                const std::optional<Observation>& control, const policy::SeccompPolicy* policy) {
  const bool absent = control && control->answered && attack.absent_errno != 0 &&
                      control->sys_errno == attack.absent_errno;
  // Inside the answer of a host that does not have it, and no control that says otherwise.
  const bool absent_inside = inside.answered && attack.absent_errno != 0 &&
                             inside.sys_errno == attack.absent_errno && (!control || absent);
  if (absent_inside || lacks_optional_layer(attack, inside)) return CaseState::kNotApplicable;
  const bool stopped = matches(attack.expected, inside) ||
                       (policy != nullptr && stopped_by_policy(attack, inside, *policy));
  if (!stopped) return CaseState::kFail;
  if (!control || absent) return CaseState::kNotApplicable;
  if (!control->answered) return CaseState::kControlFailed;
  if (control_differs(attack, inside, *control)) return CaseState::kPass;
  return attack.host_may_match ? CaseState::kNotApplicable : CaseState::kControlFailed;
}

std::string describe(const Observation& seen) {
  if (!seen.hostile_syscall.empty()) return "ended for " + seen.hostile_syscall;
  if (!seen.answered) return escape_for_terminal(seen.trouble);
  if (seen.sys_errno != 0) {
    const char* const name = ::strerrorname_np(seen.sys_errno);
    return name == nullptr ? fmt::format("errno {}", seen.sys_errno) : std::string(name);
  }
  if (seen.value.empty()) return "succeeded";
  std::string text;
  for (const char c : seen.value) {
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  }
  return escape_for_terminal(text);
}

}  // namespace sbx::cli
