// The workspace of a session: its room in memory, and what becomes of /work.
#include <gmock/gmock.h>

#include "tests/unit/plan/synthetic.h"

namespace sbx::plan::test {
namespace {

using ::testing::HasSubstr;

Request with_workspace(std::uint64_t bytes, std::uint64_t inodes = 1) {
  Request request = python("");
  request.workspace = WorkspaceSize{bytes, inodes};
  return request;
}

const TmpfsMount& work_of(const Plan& plan) {
  return plan.tmpfs.at(kWorkMount);
}

TEST(Work, OfARunWithoutAWorkspaceIsNeitherFilledNorSaved) {
  const Plan plan = planned(command({"/bin/true"}));
  EXPECT_EQ(work_of(plan).target, "/work");
  EXPECT_FALSE(work_of(plan).saved);
  EXPECT_FALSE(plan.workspace);
  const auto block = flatten(plan, {});
  ASSERT_TRUE(block);
  EXPECT_EQ(reinterpret_cast<const FlatPlan*>(block->data())->has_fill, 0U);
}

TEST(Work, OfASessionIsFilledAndSavedAlsoWithoutCodeAndInputs) {
  Request request = command({"/bin/true"});
  request.workspace.emplace();
  const Plan plan = planned(request);
  EXPECT_TRUE(work_of(plan).saved);
  EXPECT_FALSE(work_of(plan).collected);
  const auto block = flatten(plan, {});
  ASSERT_TRUE(block);
  const auto* flat = reinterpret_cast<const FlatPlan*>(block->data());
  EXPECT_EQ(flat->has_fill, 1U);
  EXPECT_EQ(flat->tmpfs[kWorkMount].passed, unsigned{kSlotWork});
  EXPECT_THAT(plan_text(plan),
              HasSubstr("/work: tmpfs, 64M, 4096 inodes, mode 0755, writable by the "
                        "payload, filled from the session's workspace, saved to "
                        "it afterwards"));
}

TEST(Workspace, AtItsQuotaIsAcceptedAndPastItRefusedWithBothFigures) {
  policy::Policy policy = default_policy();
  policy.limits.work = 1 * policy::kMiB;
  policy.limits.work_inodes = 10;
  const auto refusal = [&](std::uint64_t bytes, std::uint64_t inodes) {
    return refused(with_workspace(bytes, inodes), synthetic_host(), policy).detail;
  };
  EXPECT_EQ(refusal(policy::kMiB, 10), "accepted");
  EXPECT_EQ(refusal(policy::kMiB + 4096, 10),
            "a workspace of 1028K is over its quota (work) of 1M");
  EXPECT_EQ(refusal(policy::kMiB, 11),
            "a workspace of 11 inodes is over its quota (work_inodes) of 10");
}

TEST(Workspace, ThatDoesNotFitTheMemoryIsRefusedWithBothFiguresAndTheFix) {
  policy::Policy policy = default_policy();
  policy.limits.memory = 8 * policy::kMiB;
  // 4M are for the program itself, 1K for each inode.
  EXPECT_EQ(refused(with_workspace(4 * policy::kMiB - 4096), synthetic_host(), policy).detail,
            "accepted");
  const Error error = refused(with_workspace(4 * policy::kMiB), synthetic_host(), policy);
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_EQ(error.detail,
            "a workspace of 4M in 1 inodes needs 8193K with what else the run is given, and the "
            "memory limit is 8M");
  EXPECT_THAT(error.fix, HasSubstr("remove files from the workspace"));
}

TEST(Workspace, SharesTheMemoryWithInputsAndCode) {
  policy::Policy policy = default_policy();
  policy.limits.memory = 8 * policy::kMiB;
  Request request = with_workspace(2 * policy::kMiB);
  request.files.push_back({"a", std::string(policy::kMiB, 'x')});
  EXPECT_EQ(refused(request, synthetic_host(), policy).detail, "accepted");
  request.code = std::string(policy::kMiB, 'x');
  EXPECT_THAT(refused(request, synthetic_host(), policy).detail, HasSubstr("needs 8193K"));
}

}  // namespace
}  // namespace sbx::plan::test
