// System calls: what a single probe cannot show. The lines that one can are in the catalogue
// (catalogue_test.cc); foreign ABIs and numbers of the future also in tests/unit/policy, through a
// BPF interpreter.
#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>

#include "tests/adversarial/neighbours.h"

namespace sbx::test {
namespace {

using cli::Observation;
using policy::Layer;
using ::testing::Contains;
using ::testing::HasSubstr;

class SystemCalls : public AdversarialTest {};

TEST_F(SystemCalls, ThreadsWorkWithoutClone3) {
  EXPECT_EQ(arena().attack("clone3").sys_errno, ENOSYS);
  const Observation threads = arena().attack("threads");
  EXPECT_EQ(threads.value, "4") << threads.trouble;
}

TEST_F(SystemCalls, AProgramsOwnFilterWorksBelowOurs) {
  const Observation own = arena().attack("own_filter");
  EXPECT_EQ(own.value, "works") << own.trouble;
}

// What the filter answers by itself is not counted, what goes to init is.
TEST_F(SystemCalls, DenialsAreCountedByNameAndQuietOnesAreNot) {
  EXPECT_THAT(arena().attack("kcmp", "init").denied, Contains("kcmp"));
  EXPECT_THAT(arena().attack("clone3").denied, ::testing::IsEmpty());
}

// A hostile call is never answered: what would come after it does not happen.
TEST_F(SystemCalls, NothingIsDoneAfterAHostileCall) {
  plan::Request request = Arena::probe("each");
  request.argv = {"/input/sbx-probe", "each", "hostname", "", "keyctl", "", "hostname", ""};
  const auto outcome = arena().run(request);
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(outcome->status, collect::Status::kSecurity);
  const std::string& said = outcome->stdout_bytes;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

class Keys : public NeighboursTest {};

TEST_F(Keys, OfOneRunAreUnseenByAnotherEvenWithoutTheFilter) {
  const Weakening weakening = without(Layer::kSeccomp);
  const std::string own = found("both", "keys", weakening);
  if (own == "no keys\n") GTEST_SKIP() << "this kernel has no keys";
  EXPECT_THAT(own, HasSubstr("session")) << "the control: a run finds what it left itself";
  const auto other = leave("keys", weakening);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(found("find", "keys", weakening), "none\n");
}

}  // namespace
}  // namespace sbx::test
