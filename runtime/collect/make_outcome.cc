#include "runtime/collect/make_outcome.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/collect/notes.h"
#include "runtime/collect/verdict.h"
#include "runtime/policy/seccomp.h"

namespace sbx::collect {
namespace {

using supervise::Ending;

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

void apply_failures(std::vector<policy::LayerReport>& layers, const Ending& ending) {
  for (const supervise::LayerFailure& failure : ending.layer_failures) {
    const std::string_view name = policy::layer_name(failure.layer);
    auto report = std::find_if(layers.begin(), layers.end(),
                               [&](const policy::LayerReport& r) { return r.name == name; });
    if (report == layers.end()) {
      report = layers.insert(layers.end(), policy::LayerReport{std::string(name), {}, {}});
    }
    report->state = policy::LayerState::kMissing;
    report->detail = failure.step;
    if (failure.sys_errno != 0) {
      report->detail += std::string(": ") + std::strerror(failure.sys_errno);
    }
  }
}

bool is_held(const std::vector<policy::LayerReport>& layers, policy::Layer layer) {
  return std::any_of(layers.begin(), layers.end(), [&](const policy::LayerReport& report) {
    return report.name == policy::layer_name(layer) && report.state == policy::LayerState::kHeld;
  });
}

std::optional<std::uint64_t> cpu_limit(const std::vector<policy::CallerLimit>& limits) {
  const auto limit = std::find_if(limits.begin(), limits.end(),
                                  [](const policy::CallerLimit& l) { return l.name == "cpu"; });
  return limit == limits.end() ? std::nullopt : std::optional(limit->value);
}

std::vector<Denial> denials_of(const Ending& ending) {
  std::vector<Denial> denials;
  for (const supervise::SeenCall& call : ending.denied) {
    denials.push_back({policy::syscall_name(call.arch, call.nr), "deny", call.count,
                       !ending.denied_counts_are_final});
  }
  if (const auto& call = ending.hostile) {
    denials.push_back({policy::syscall_name(call->arch, call->nr), "hostile",
                       std::max<std::uint64_t>(call->count, 1)});
  }
  return denials;
}

ResourceUsage usage_of(const cgroup::Usage& usage) {
  return {.cpu_seconds = static_cast<double>(usage.cpu_usec) / 1e6,
          .memory_peak = usage.memory_peak,
          .pids_peak = usage.pids_peak,
          .oom_kills = usage.oom_kills,
          .throttled_seconds = static_cast<double>(usage.throttled_usec) / 1e6,
          .pids_refused = usage.pids_refused};
}

// What does not depend on how the run went.
Outcome base_outcome(OutcomeContext& context) {
  Outcome outcome;
  outcome.id = std::move(context.id);
  outcome.limits = context.limits;
  outcome.profile = std::move(context.profile);
  outcome.language = std::move(context.language);
  outcome.image_name = std::move(context.image_name);
  outcome.image_digest = std::move(context.image_digest);
  outcome.start = std::move(context.start);
  outcome.layers = std::move(context.layers);
  outcome.files = std::move(context.files);
  outcome.refused = std::move(context.refused);
  outcome.workspace = std::move(context.workspace);
  return outcome;
}

void set_verdict(Outcome& outcome, Verdict verdict) {
  outcome.status = verdict.status;
  outcome.exit_code = verdict.exit_code;
  outcome.signal = verdict.signal;
  outcome.error = std::move(verdict.error);
}

void set_captured(Outcome& outcome, const Ending& ending) {
  outcome.stdout_bytes = ending.out.head + ending.out.tail;
  outcome.stdout_dropped = ending.out.dropped;
  outcome.stdout_head = ending.out.head.size();
  outcome.stderr_bytes = ending.err.head + ending.err.tail;
  outcome.stderr_dropped = ending.err.dropped;
  outcome.stderr_head = ending.err.head.size();
}

void set_times(Outcome& outcome, const Ending& ending, std::chrono::nanoseconds collect) {
  outcome.duration_seconds = seconds(ending.total);
  outcome.timings.setup = seconds(ending.setup);
  outcome.timings.run = seconds(std::max(ending.total - ending.setup, {}));
  outcome.timings.collect = seconds(collect);
}

}  // namespace

Outcome make_outcome(const Ending& ending, OutcomeContext context) {
  NoteContext notes{.limits = context.limits,
                    .caller_limits = std::move(context.caller_limits),
                    .has_files = !context.files.empty() || !context.refused.empty(),
                    .missing_module_pattern = std::move(context.missing_module_pattern),
                    .packages = std::move(context.packages)};
  Outcome outcome = base_outcome(context);
  apply_failures(outcome.layers, ending);
  const bool separated = is_held(outcome.layers, policy::Layer::kUidSeparation);
  set_verdict(outcome, judge(ending, {.uid_separation_held = separated,
                                      .caller_cpu_seconds = cpu_limit(notes.caller_limits)}));
  // A collector that failed may have missed files, and a workspace that was not saved is lost work:
  // never a success, and the weaker of two failures.
  if (context.collect_failure && outcome.status != Status::kSandboxError) {
    set_verdict(outcome, {.error = error_info(*context.collect_failure)});
  }
  notes.status = outcome.status;
  outcome.notes = make_notes(ending, notes);
  outcome.limits_hit = limits_reached(ending, outcome.status);
  outcome.limits_hit.insert(outcome.limits_hit.end(), context.collect_limits_hit.begin(),
                            context.collect_limits_hit.end());
  outcome.denials = denials_of(ending);
  outcome.denials_unlisted = ending.denied_unlisted;
  if (ending.usage) outcome.usage = usage_of(*ending.usage);
  set_captured(outcome, ending);
  set_times(outcome, ending, context.collect_time);
  return outcome;
}

Outcome make_refusal(const Error& error, OutcomeContext context) {
  Outcome outcome = base_outcome(context);
  outcome.error = error_info(error);
  return outcome;
}

}  // namespace sbx::collect
