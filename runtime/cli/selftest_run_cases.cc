#include "runtime/cli/selftest_run_cases.h"

#include <fmt/core.h>

#include <csignal>
#include <cstring>

#include "runtime/base/escape.h"
#include "runtime/cli/selftest_run_tables.h"
#include "runtime/policy/layers.h"

namespace sbx::cli {
namespace {

std::string ending_of(const collect::Outcome& outcome) {
  std::string text(collect::status_name(outcome.status));
  if (outcome.status == collect::Status::kSignal) {
    const char* const name = ::sigabbrev_np(outcome.signal.value_or(0));
    text += name == nullptr ? std::string(" ?") : fmt::format(" SIG{}", name);
  }
  if (outcome.status == collect::Status::kExit) text += fmt::format(" {}", outcome.exit_code);
  if (outcome.error) {
    text += fmt::format(": {} (errno {}) {}", outcome.error->step, outcome.error->sys_errno,
                        outcome.error->detail);
  }
  return text;
}

std::string limits_of(const collect::Outcome& outcome) {
  std::string text;
  for (const std::string& limit : outcome.limits_hit) {
    const bool said = limit == "wall_seconds" || limit == "cpu_seconds";  // by the status
    if (!said) text += (text.empty() ? ", at its limit: " : " ") + limit;
  }
  return text;
}

bool refused_here(const RunControl& control) {
  return control.run && control.run->refused;
}

bool control_works(const RunCase& attack, const RunControl& control) {
  if (control.run) return attack.got_through(*control.run);
  return control.outside && control.outside->answered && control.outside->sys_errno == 0 &&
         control.outside->value == attack.outside_value;
}

}  // namespace

std::span<const RunCase> run_cases() {
  static const std::vector<RunCase> all = [] {
    std::vector<RunCase> cases;
    for (const auto table : {files_out_cases(), killing_cases(), memory_cases()}) {
      cases.insert(cases.end(), table.begin(), table.end());
    }
    return cases;
  }();
  return all;
}

int answer_of(const RunSeen& seen) {
  if (!ended_as(seen, collect::Status::kOk)) return -1;
  std::string_view line = seen.outcome->stdout_bytes;
  if (line.ends_with('\n')) line.remove_suffix(1);
  line = line.substr(line.rfind('\n') + 1);  // npos + 1 is 0
  const Observation said = parse_probe_line(line);
  return said.answered ? said.sys_errno : -1;
}

std::vector<std::string> missing_layers(const collect::Outcome& outcome) {
  std::vector<std::string> names;
  for (const policy::LayerReport& layer : outcome.layers) {
    const bool missing =
        layer.state == policy::LayerState::kMissing || layer.state == policy::LayerState::kOff;
    if (missing) names.push_back(layer.name);
  }
  return names;
}

CaseState judge_run(const RunCase& attack, const RunSeen& inside, const RunControl& control) {
  if (inside.refused) return CaseState::kNotApplicable;
  if (!attack.held(inside)) return CaseState::kFail;
  if (refused_here(control)) return CaseState::kNotApplicable;
  // Who saw nothing while it ran does not know that nothing was left.
  if (inside.alive_during == 0) return CaseState::kControlFailed;
  return control_works(attack, control) ? CaseState::kPass : CaseState::kControlFailed;
}

std::string describe(const RunSeen& seen) {
  if (!seen.outcome) return escape_for_terminal(seen.trouble);
  const collect::Outcome& outcome = *seen.outcome;
  std::string text = ending_of(outcome) + limits_of(outcome);
  const int answer = answer_of(seen);
  if (answer > 0) {
    const char* const name = ::strerrorname_np(answer);
    text += name == nullptr ? fmt::format(", errno {}", answer) : fmt::format(", {}", name);
  }
  if (seen.alive_during >= 0) {
    text += fmt::format(", {} alive, then {}", seen.alive_during, seen.alive_after);
  }
  if (outcome.stdout_dropped > 0) text += fmt::format(", {} bytes cut", outcome.stdout_dropped);
  if (!outcome.files.empty() || !outcome.refused.empty()) {
    text += fmt::format(", {} out, {} refused", outcome.files.size(), outcome.refused.size());
  }
  return escape_for_terminal(text);
}

std::string describe(const RunControl& control) {
  if (control.run) return describe(*control.run);
  return control.outside ? describe(*control.outside) : "not run";
}

}  // namespace sbx::cli
