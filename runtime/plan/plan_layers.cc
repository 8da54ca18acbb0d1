// Which layers a plan will hold, and what follows from those it will not.
#include <array>
#include <string_view>

#include "runtime/plan/layout.h"

namespace sbx::plan {
namespace {

using policy::Layer;
using policy::LayerReport;
using policy::LayerState;

LayerReport cgroup_layer(const HostFacts& host) {
  if (host.cgroup_detail.empty()) {
    return {"cgroup", LayerState::kMissing,
            "no cgroup: the limits memory, cpus, cpu_seconds and pids do not hold"};
  }
  const LayerState state = host.swap_controlled ? LayerState::kHeld : LayerState::kDegraded;
  return {"cgroup", state,
          host.cgroup_detail + (host.swap_controlled ? "" : "; swap is not limited")};
}

LayerReport cpuset_layer(const Plan& plan) {
  if (plan.visible_cpus >= plan.host_cpus) {
    return {"cpuset", LayerState::kHeld, "all CPUs are allowed"};
  }
  return {"cpuset", LayerState::kDegraded, "by affinity, which the program can widen"};
}

// A core of size 0 is none, but where a handler of the host's takes them, it is run all the same,
// as root, on memory that a payload chose: only 1 stops that (docs/child-setup.md).
LayerReport rlimits_layer(const Plan& plan, const HostFacts& host) {
  LayerReport report{"rlimits", LayerState::kHeld, {}};
  if (host.hard_core == 0) {
    report.state = host.core_is_piped ? LayerState::kDegraded : LayerState::kHeld;
    report.detail = host.core_is_piped
                        ? "the hard limit on cores is 0, which does not keep kernel.core_pattern's "
                          "handler from a crash in here"
                        : "core is 0, as for the caller; cores go to files here";
  }
  for (const policy::CallerLimit& limit : plan.caller_limits) {
    const bool first = &limit == &plan.caller_limits.front();
    if (first) report.detail += report.detail.empty() ? "" : "; ";
    report.detail += (first ? "the caller's own hold too: " : ", ") + caller_limit_text(limit);
  }
  return report;
}

// A profile that opened calls holds less than its name says, so each of them is named.
std::string seccomp_detail(const policy::Policy& policy) {
  const std::string loosening = policy::loosening_text(policy.seccomp);
  return "profile " + policy.profile + (loosening.empty() ? "" : "; " + loosening);
}

LayerReport report_for(Layer layer, const Plan& plan, const HostFacts& host) {
  LayerReport report{std::string(policy::layer_name(layer)), LayerState::kHeld, {}};
  if ((host.missing & policy::layer_bit(layer)) != 0) {
    report.state = LayerState::kMissing;
    report.detail =
        layer == Layer::kTimeNamespace ? "needs Linux 6.3" : "this kernel does not have it";
    return report;
  }
  switch (layer) {
    case Layer::kCgroup:
      return cgroup_layer(host);
    case Layer::kCpuset:
      return cpuset_layer(plan);
    case Layer::kNetNamespace:
      if (!plan.net_namespace) {
        report.state = LayerState::kOff;
        report.detail =
            "network is the host's: its loopback services and abstract sockets were reachable";
        // An image has no resolv.conf, and nothing can be put into it.
        if (!plan.image.is_host()) report.detail += "; no DNS, which only --rootfs host has";
      }
      return report;
    case Layer::kRlimits:
      return rlimits_layer(plan, host);
    case Layer::kUidSeparation:
      if (plan.ids == IdMode::kSingle) report.state = LayerState::kDegraded;
      report.detail = host.id_detail;
      return report;
    case Layer::kRootfs:
      report.detail = plan.image.is_host() ? "host /usr" : "image " + plan.image.name;
      return report;
    case Layer::kSeccomp:
      report.detail = seccomp_detail(plan.policy);
      return report;
    default:
      return report;
  }
}

std::string fix_for(Layer layer) {
  if (policy::layer_is_indispensable(layer)) return "use a kernel that has it";
  const std::string allow =
      "or run without it, knowingly: --allow-missing " + std::string(policy::layer_name(layer));
  if (layer == Layer::kCgroup) return "see 'sbx-run doctor' for the lines that make one, " + allow;
  if (layer == Layer::kRlimits) return std::string(kCoreFix) + ", " + allow;
  return "use a kernel that has it, " + allow;
}

constexpr auto kStepCount = static_cast<std::uint32_t>(Step::kCount);

// The layer that each step holds up, or 0. Found by name, which takes longer than the rest of a
// plan, so by the compiler.
constexpr auto kLayerOfStep = [] {
  std::array<policy::LayerMask, kStepCount> layers{};
  for (std::uint32_t i = 0; i < kStepCount; ++i) {
    const auto layer = policy::layer_from_name(step_layer(static_cast<Step>(i)));
    if (layer) layers[i] = policy::layer_bit(*layer);
  }
  return layers;
}();

StepMask steps_of(policy::LayerMask layers) {
  StepMask steps = 0;
  for (std::uint32_t i = 0; i < kStepCount; ++i) {
    if ((layers & kLayerOfStep[i]) != 0) steps |= step_bit(static_cast<Step>(i));
  }
  return steps;
}

// Failing, these would leave init in the host's own view: no flag excuses them.
constexpr StepMask kNeverForgiven =
    step_bit(Step::kPrivateMounts) | step_bit(Step::kRootfs) | step_bit(Step::kHostFiles) |
    step_bit(Step::kTmpfs) | step_bit(Step::kDevices) | step_bit(Step::kPivot) |
    step_bit(Step::kReadOnlyInputs) | step_bit(Step::kIdentity) | step_bit(Step::kGroups);

}  // namespace

Result<void> plan_layers(Plan& plan, const HostFacts& host) {
  policy::LayerMask absent = 0;
  policy::LayerMask optional = 0;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Layer::kCount); ++i) {
    const Layer layer = static_cast<Layer>(i);
    const policy::LayerMask bit = policy::layer_bit(layer);
    LayerReport report = report_for(layer, plan, host);
    const bool allowed =
        (plan.policy.allow_missing & bit) != 0 && !policy::layer_is_indispensable(layer);
    const bool lacking =
        report.state == LayerState::kMissing || report.state == LayerState::kDegraded;
    if (policy::layer_required(layer) && lacking && !allowed) {
      return host_lacks("layer " + report.name, 0, report.detail, fix_for(layer));
    }
    if (report.state == LayerState::kMissing) absent |= bit;
    if (!policy::layer_required(layer) || allowed) optional |= bit;
    plan.layers.push_back(std::move(report));
  }
  plan.may_fail = steps_of(optional) & ~kNeverForgiven;
  plan.skip = steps_of(absent) & ~kNeverForgiven;
  if ((absent & policy::layer_bit(Layer::kNetNamespace)) != 0) plan.net_namespace = false;
  if (!plan.net_namespace) plan.skip |= step_bit(Step::kNetNamespace);
  if (plan.visible_cpus >= plan.host_cpus) plan.skip |= step_bit(Step::kAffinity);
  return {};
}

}  // namespace sbx::plan
