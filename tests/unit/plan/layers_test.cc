// Required layers refuse, optional ones are told; what a flag may excuse, and what none may.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/plan/synthetic.h"

namespace sbx::plan::test {
namespace {

using policy::Layer;
using policy::LayerState;
using ::testing::HasSubstr;

constexpr Layer kAll[] = {
#define SBX_LAYER_LISTED(enumerator, name, required) Layer::enumerator,
    SBX_LAYERS(SBX_LAYER_LISTED)
#undef SBX_LAYER_LISTED
};

// A host without that layer. Some are no namespaces but come from other facts.
HostFacts without(Layer layer) {
  HostFacts host = synthetic_host();
  if (layer == Layer::kCgroup) {
    host.cgroup_detail.clear();
  } else {
    host.missing = policy::layer_bit(layer);
  }
  return host;
}

policy::Policy allowing(Layer layer) {
  policy::Policy policy = default_policy();
  policy.allow_missing = policy::layer_bit(layer);
  return policy;
}

policy::LayerReport report_of(const Plan& plan, Layer layer) {
  const auto found = std::find_if(plan.layers.begin(), plan.layers.end(), [&](const auto& report) {
    return report.name == policy::layer_name(layer);
  });
  return found == plan.layers.end() ? policy::LayerReport{"none", {}, {}} : *found;
}

TEST(Layers, AreAllReportedInTheContractsOrder) {
  const Plan plan = planned(python());
  ASSERT_EQ(plan.layers.size(), std::size(kAll));
  for (std::size_t i = 0; i < std::size(kAll); ++i) {
    EXPECT_EQ(plan.layers[i].name, policy::layer_name(kAll[i]));
  }
}

TEST(RequiredLayers, ThatAreMissingRefuseTheRunAndNameTheFix) {
  for (const Layer layer : kAll) {
    if (!policy::layer_required(layer)) continue;
    const std::string name(policy::layer_name(layer));
    const Error error = refused(python(), without(layer));
    EXPECT_EQ(error.code, ErrorCode::kHost) << name;
    EXPECT_EQ(error.operation, "layer " + name);
    const bool offered = error.fix.find("--allow-missing " + name) != std::string::npos;
    EXPECT_EQ(offered, !policy::layer_is_indispensable(layer)) << error.fix;
  }
}

TEST(RequiredLayers, MayBeMissingWhereTheCallerNamedThem) {
  for (const Layer layer : kAll) {
    if (!policy::layer_required(layer) || policy::layer_is_indispensable(layer)) continue;
    const Plan plan = planned(python(), without(layer), allowing(layer));
    EXPECT_EQ(report_of(plan, layer).state, LayerState::kMissing) << policy::layer_name(layer);
  }
}

TEST(RequiredLayers, WithoutWhichThereIsNoSandboxAreNeverExcused) {
  for (const Layer layer : {Layer::kMountNamespace, Layer::kPidNamespace, Layer::kRootfs}) {
    const Error error = refused(python(), without(layer), allowing(layer));
    EXPECT_EQ(error.operation, "layer " + std::string(policy::layer_name(layer)));
  }
}

TEST(RequiredLayers, OneThatIsAllowedExcusesNoOther) {
  EXPECT_EQ(refused(python(), without(Layer::kCgroup), allowing(Layer::kSeccomp)).operation,
            "layer cgroup");
}

TEST(RequiredLayers, ThatAreDegradedRefuseTheRunToo) {
  HostFacts host = synthetic_host();
  host.swap_controlled = false;
  EXPECT_EQ(refused(python(), host).operation, "layer cgroup");
  EXPECT_THAT(refused(python(), host).detail, HasSubstr("swap is not limited"));
  const Plan plan = planned(python(), host, allowing(Layer::kCgroup));
  EXPECT_EQ(report_of(plan, Layer::kCgroup).state, LayerState::kDegraded);
}

TEST(OptionalLayers, ThatAreMissingAreReportedAndTheirStepsSkipped) {
  for (const Layer layer : {Layer::kLandlock, Layer::kTimeNamespace}) {
    const Plan plan = planned(python(), without(layer));
    EXPECT_EQ(report_of(plan, layer).state, LayerState::kMissing);
    const Step step = layer == Layer::kLandlock ? Step::kLandlock : Step::kTimeNamespace;
    EXPECT_NE(plan.skip & step_bit(step), 0U);
  }
}

TEST(UidSeparation, IsDegradedWherePayloadAndInitShareAnId) {
  HostFacts host = synthetic_host();
  host.root = false;
  host.ids = IdMode::kSingle;
  host.id_count = 1;
  host.id_detail = "no subordinate ids in /etc/subuid and /etc/subgid";
  const auto report = report_of(planned(python(), host), Layer::kUidSeparation);
  EXPECT_EQ(report.state, LayerState::kDegraded);
  EXPECT_THAT(report.detail, HasSubstr("/etc/subuid"));
  EXPECT_THAT(plan_text(planned(python(), host)), HasSubstr("the same id as init"));
}

TEST(Cpuset, IsDegradedWhereTheRunMayUseFewerCpusThanThereAre) {
  EXPECT_EQ(report_of(planned(python()), Layer::kCpuset).state, LayerState::kDegraded);
  HostFacts host = synthetic_host();
  host.cpus = 1;
  const Plan plan = planned(python(), host);
  EXPECT_EQ(report_of(plan, Layer::kCpuset).state, LayerState::kHeld);
  EXPECT_NE(plan.skip & step_bit(Step::kAffinity), 0U);
}

TEST(HostNetwork, IsOffAndSaysWhatThatMeans) {
  policy::Policy policy = default_policy();
  policy.limits.network = policy::NetworkMode::kHost;
  const Plan plan = planned(python(), synthetic_host(), policy);
  const auto report = report_of(plan, Layer::kNetNamespace);
  EXPECT_EQ(report.state, LayerState::kOff);
  EXPECT_THAT(report.detail, HasSubstr("abstract sockets"));
  EXPECT_NE(plan.skip & step_bit(Step::kNetNamespace), 0U);
  EXPECT_FALSE(plan.net_namespace);
  EXPECT_THAT(plan_text(plan), HasSubstr("HOST: the machine's own network, not isolated"));
}

TEST(Seccomp, NamesTheCallsThatTheProfileOpened) {
  EXPECT_EQ(report_of(planned(python()), Layer::kSeccomp).detail, "profile default");
  policy::Policy policy = default_policy();
  policy.seccomp.loosened = {"ptrace", "unshare"};
  EXPECT_EQ(report_of(planned(python(), synthetic_host(), policy), Layer::kSeccomp).detail,
            "profile default; no longer hostile: ptrace, unshare");
  EXPECT_THAT(plan_text(planned(python(), synthetic_host(), policy)),
              HasSubstr("  by the profile no longer hostile: ptrace, unshare\n"));
  policy.seccomp.opened = {"clone3", "io_uring_setup"};
  EXPECT_EQ(report_of(planned(python(), synthetic_host(), policy), Layer::kSeccomp).detail,
            "profile default; no longer hostile: ptrace, unshare; opened: clone3, io_uring_setup");
  policy.seccomp.loosened.clear();
  EXPECT_THAT(plan_text(planned(python(), synthetic_host(), policy)),
              HasSubstr("  by the profile opened: clone3, io_uring_setup\n"));
}

TEST(RlimitsLayer, NeedsACoreLimitOfOneWhereCoresGoThroughAPipe) {
  HostFacts host = synthetic_host();
  host.core_is_piped = true;
  EXPECT_EQ(report_of(planned(python(), host), Layer::kRlimits).state, LayerState::kHeld);
  host.hard_core = 0;
  const Error error = refused(python(), host);
  EXPECT_EQ(error.code, ErrorCode::kHost);
  EXPECT_EQ(error.operation, "layer rlimits");
  EXPECT_THAT(error.detail, HasSubstr("core"));
  EXPECT_THAT(error.fix, HasSubstr("ulimit -c 1"));
  const Plan plan = planned(python(), host, allowing(Layer::kRlimits));
  EXPECT_EQ(report_of(plan, Layer::kRlimits).state, LayerState::kDegraded);
  EXPECT_EQ(plan.skip & step_bit(Step::kRlimits), 0U) << "the other limits hold";
}

TEST(RlimitsLayer, HoldsWithoutACoreWhereCoresGoToFiles) {
  HostFacts host = synthetic_host();
  host.hard_core = 0;
  const Plan plan = planned(python(), host);
  EXPECT_EQ(report_of(plan, Layer::kRlimits).state, LayerState::kHeld);
  EXPECT_THAT(report_of(plan, Layer::kRlimits).detail, HasSubstr("core is 0"));
  EXPECT_EQ(plan.rlimits.front().name, "core");
  EXPECT_EQ(plan.rlimits.front().value, 0U);
}

TEST(RlimitsLayer, NamesWhatTheCallerHasLessOfThanWasPromised) {
  HostFacts host = synthetic_host();
  host.hard_cpu = 29;
  host.hard_as = 100 * policy::kMiB;
  host.hard_nproc = 63;
  const Plan plan = planned(python(), host);
  const policy::LayerReport report = report_of(plan, Layer::kRlimits);
  EXPECT_EQ(report.state, LayerState::kHeld);
  EXPECT_EQ(report.detail, "the caller's own hold too: cpu 29 s, as 100M, nproc 63");
  host = synthetic_host();
  host.hard_cpu = 30;  // the wall time is over before
  host.hard_nproc = 64;
  EXPECT_EQ(report_of(planned(python(), host), Layer::kRlimits).detail, "");
}

TEST(NetLayer, ThatIsOffSaysWhetherNamesAreResolved) {
  policy::Policy policy = default_policy();
  policy.limits.network = policy::NetworkMode::kHost;
  const Plan plan = planned(python(), synthetic_host(), policy);
  EXPECT_THAT(report_of(plan, Layer::kNetNamespace).detail, HasSubstr("no DNS"));
  HostFacts host = synthetic_host();
  host.image = {};
  host.image.name = "host";
  const Plan on_host = planned(python(), host, policy);
  EXPECT_EQ(report_of(on_host, Layer::kNetNamespace).detail.find("no DNS"), std::string::npos);
  EXPECT_EQ(on_host.binds.back().target, "etc/resolv.conf");
  EXPECT_NE(planned(python(), host).binds.back().target, "etc/resolv.conf");
}

TEST(CgroupLayer, SaysWhichLimitsDoNotHoldWithoutIt) {
  const Plan plan = planned(python(), without(Layer::kCgroup), allowing(Layer::kCgroup));
  EXPECT_THAT(report_of(plan, Layer::kCgroup).detail,
              HasSubstr("memory, cpus, cpu_seconds and pids do not hold"));
}

TEST(Steps, OfWhichAFailureIsForgivenAreThoseOfOptionalLayers) {
  const Plan plan = planned(python());
  EXPECT_EQ(plan.may_fail,
            step_bit(Step::kTimeNamespace) | step_bit(Step::kLandlock) | step_bit(Step::kAffinity));
  EXPECT_EQ(plan.skip, 0U);
}

TEST(Steps, ThatKeepTheHostOutOfSightAreNeverForgiven) {
  policy::Policy policy = default_policy();
  policy.allow_missing = ~policy::LayerMask{0};
  const Plan plan = planned(python(), synthetic_host(), policy);
  for (const Step step : {Step::kPrivateMounts, Step::kRootfs, Step::kHostFiles, Step::kTmpfs,
                          Step::kDevices, Step::kPivot, Step::kReadOnlyInputs, Step::kIdentity,
                          Step::kGroups, Step::kSession, Step::kParentDeath, Step::kLifeline,
                          Step::kFill, Step::kStartPayload, Step::kCloseDescriptors, Step::kExec}) {
    EXPECT_EQ(plan.may_fail & step_bit(step), 0U) << step_name(step);
    EXPECT_EQ(plan.skip & step_bit(step), 0U) << step_name(step);
  }
}

}  // namespace
}  // namespace sbx::plan::test
