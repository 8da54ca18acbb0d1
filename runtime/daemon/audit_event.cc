#include "runtime/daemon/audit_event.h"

#include <fmt/core.h>

#include "runtime/daemon/json_parts.h"

namespace sbx::daemon {
namespace {

template <typename T>
std::string or_null(const std::optional<T>& value) {
  return value ? std::to_string(*value) : "null";
}

std::string denials_json(const collect::Outcome& outcome) {
  std::string json;
  for (const collect::Denial& denial : outcome.denials) {
    json += fmt::format(R"({}{{"syscall":{},"tier":"{}","count":{}}})", json.empty() ? "" : ",",
                        json_string(denial.syscall), denial.tier, denial.count);
  }
  return "[" + json + "]";
}

std::string names_json(const std::vector<std::string>& names) {
  std::string json;
  for (const std::string& name : names) json += (json.empty() ? "" : ",") + json_string(name);
  return "[" + json + "]";
}

std::string usage_json(const collect::Outcome& outcome) {
  if (!outcome.usage) return "null";
  return fmt::format(R"({{"cpu_seconds":{:.6f},"memory_peak":{}}})", outcome.usage->cpu_seconds,
                     outcome.usage->memory_peak);
}

// Layers that did not hold: the others are the rule.
std::string weak_layers_json(const collect::Outcome& outcome) {
  std::string json;
  for (const policy::LayerReport& layer : outcome.layers) {
    if (layer.state == policy::LayerState::kHeld) continue;
    json += fmt::format(R"({}"{}":"{}")", json.empty() ? "" : ",", layer.name,
                        layer_state_name(layer.state));
  }
  return "{" + json + "}";
}

}  // namespace

std::string run_event(const AuditSubject& subject, const collect::Outcome& outcome) {
  std::string text = fmt::format(
      R"("event":"run","run":"{}","uid":{},"pid":{},"session":{},"language":{},"profile":{},)",
      outcome.id, or_null(subject.peer.uid), or_null(subject.peer.pid),
      subject.session.empty() ? "null" : json_string(subject.session),
      outcome.language.empty() ? "null" : json_string(outcome.language),
      json_string(outcome.profile));
  text += fmt::format(R"("program_sha256":"{}","inputs":{},"inputs_sha256":{},"limits":{},)",
                      subject.program_sha256, subject.inputs,
                      subject.inputs_sha256.empty() ? "null" : json_string(subject.inputs_sha256),
                      limits_json(outcome.limits));
  text += fmt::format(
      R"("status":"{}","exit_code":{},"signal":{},"seconds":{:.6f},"usage":{},"limits_hit":{},)",
      status_name(outcome.status), outcome.exit_code, or_null(outcome.signal),
      outcome.duration_seconds, usage_json(outcome), names_json(outcome.limits_hit));
  return text + fmt::format(R"("denials":{},"weak_layers":{})", denials_json(outcome),
                            weak_layers_json(outcome));
}

std::string reaped_event(const std::string& run) {
  return fmt::format(R"("event":"reaped","run":{})", json_string(run));
}

}  // namespace sbx::daemon
