// The list of steps against the contract's layers.
#include "runtime/plan/steps.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/policy/layers.h"

namespace sbx::plan {
namespace {

TEST(StepList, HasEachNameOnceAndLayersOfTheContractAlone) {
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Step::kCount); ++i) {
    const Step step = static_cast<Step>(i);
    EXPECT_TRUE(names.insert(step_name(step)).second) << step_name(step);
    const std::string layer = step_layer(step);
    if (!layer.empty()) {
      EXPECT_TRUE(policy::layer_from_name(layer)) << layer;
    }
  }
}

TEST(StepList, SurvivesANumberFromNowhere) {
  EXPECT_STREQ(step_name(static_cast<Step>(1000)), "unknown");
  EXPECT_STREQ(step_layer(static_cast<Step>(1000)), "");
}

// The kernel's rules (docs/child-setup.md), so that nobody sorts the list.
TEST(StepList, KeepsTheOrderThatTheKernelAsksFor) {
  EXPECT_LT(Step::kParentDeath, Step::kLifeline);
  EXPECT_LT(Step::kPrivateMounts, Step::kRootfs);
  EXPECT_LT(Step::kProc, Step::kPivot);
  EXPECT_LT(Step::kPivot, Step::kMasks);
  EXPECT_LT(Step::kFill, Step::kReadOnlyInputs);
  EXPECT_LT(Step::kJoinCgroup, Step::kCgroupNamespace);
  EXPECT_LT(Step::kJoinCgroup, Step::kIdentity);
  EXPECT_LT(Step::kGroups, Step::kIdentity);
  EXPECT_LT(Step::kIdentity, Step::kUserNamespace);
  EXPECT_LT(Step::kIdentity, Step::kPayloadParentDeath);
  EXPECT_LT(Step::kIdMaps, Step::kNoMoreUserNamespaces);
  EXPECT_LT(Step::kIdMaps, Step::kUserLimits);
  EXPECT_LT(Step::kUserLimits, Step::kCapabilities);
  EXPECT_LT(Step::kBoundingSet, Step::kCapabilities);
  EXPECT_LT(Step::kNoNewPrivs, Step::kSeccomp);
  EXPECT_LT(Step::kSeccomp, Step::kCloseDescriptors);
  EXPECT_LT(Step::kCloseDescriptors, Step::kExec);
}

}  // namespace
}  // namespace sbx::plan
