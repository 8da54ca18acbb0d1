// Result, its macros, and the text of an Error.
#include "runtime/base/result.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <memory>
#include <string>

namespace sbx {
namespace {

using ::testing::EndsWith;

Result<int> half(int number) {
  if (number % 2 != 0) return invalid(std::to_string(number) + " is odd", "give an even number");
  return number / 2;
}

Result<int> quarter(int number) {
  SBX_ASSIGN(const int once, half(number));
  SBX_ASSIGN(const int twice, half(once));
  return twice;
}

Result<void> check_quarter(int number) {
  SBX_TRY(half(number));
  SBX_TRY(half(number / 2));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = half(4);
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 2);
  const Result<int> bad = half(3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(bad.error().detail, "3 is odd");
  EXPECT_EQ(bad.error().fix, "give an even number");
}

TEST(Result, TheMacrosGiveTheValueOrReturnTheFirstError) {
  ASSERT_TRUE(quarter(8));
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().detail, "3 is odd");
  EXPECT_TRUE(check_quarter(8));
  ASSERT_FALSE(check_quarter(7));
  EXPECT_EQ(check_quarter(7).error().detail, "7 is odd");
}

TEST(Result, CarriesWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = *std::move(made);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(*taken, 7);
}

TEST(ErrorText, NamesStageOperationDetailAndReasonInThisOrder) {
  Error error;
  error.stage = "spawn";
  error.operation = "clone3";
  error.detail = "sbx-init";
  error.sys_errno = ENOSPC;
  error.fix = "the fix is not part of it";
  EXPECT_EQ(to_string(error), "spawn: clone3: sbx-init: No space left on device");
}

TEST(ErrorText, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(to_string(Error{}), "");
  EXPECT_EQ(to_string(invalid("pids must be at least 1")), "pids must be at least 1");
  EXPECT_EQ(to_string(host_lacks("mkdir", EACCES, "", "")), "mkdir: Permission denied");
}

TEST(ErrorText, ContextStandsBeforeTheDetailWithTheOutermostFirst) {
  Error error = invalid("bad size").with_context("memory").with_context("profile x.toml");
  EXPECT_EQ(to_string(error), "profile x.toml: memory: bad size");
  EXPECT_EQ(to_string(Error{}.with_context("only this")), "only this");
}

TEST(SysError, TakesErrnoAtOnce) {
  errno = EXDEV;
  const Error error = sys_error("openat2", "a/b");
  errno = 0;
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_EQ(error.sys_errno, EXDEV);
  EXPECT_THAT(to_string(error), EndsWith("Invalid cross-device link"));
}

TEST(HostLacks, IsTheHostsFaultAndSaysWhatHelps) {
  const Error error = host_lacks("cgroup v2", 0, "no delegated subtree", "systemd-run …");
  EXPECT_EQ(error.code, ErrorCode::kHost);
  EXPECT_EQ(error.fix, "systemd-run …");
}

}  // namespace
}  // namespace sbx
