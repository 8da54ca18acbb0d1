// The environment inside: a fixed list, then the language's, then the caller's.
#include <gmock/gmock.h>

#include "tests/unit/plan/synthetic.h"

namespace sbx::plan::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Request with_env(std::vector<std::pair<std::string, std::string>> env) {
  Request request = python();
  request.env = std::move(env);
  return request;
}

TEST(Environment, HoldsNothingOfTheCallers) {
  ASSERT_EQ(::setenv("SBX_TEST_SECRET", "hunter2", 1), 0);
  EXPECT_THAT(planned(python()).env, Not(Contains(HasSubstr("hunter2"))));
  EXPECT_THAT(planned(python()).env, Contains("HOME=/work"));
}

TEST(Environment, OfALanguageIsForThatLanguage) {
  EXPECT_THAT(planned(python()).env, Contains("PYTHONUNBUFFERED=1"));
  EXPECT_THAT(planned(command({"/bin/true"})).env, Not(Contains(StartsWith("PYTHONUNBUFFERED"))));
}

TEST(Environment, TakesTheCallersWordLast) {
  const Plan plan = planned(with_env({{"PATH", "/x"}, {"NEW", ""}, {"NEW", "a=b"}}));
  EXPECT_THAT(plan.env, Contains("PATH=/x"));
  EXPECT_THAT(plan.env, Contains("NEW=a=b"));
  EXPECT_THAT(plan.env, Not(Contains("NEW=")));
  EXPECT_THAT(plan.env, Not(Contains("PATH=/usr/local/bin:/usr/bin:/bin")));
}

TEST(Environment, DoesNotChangeWhereProgramsAreLookedFor) {
  Request request = command({"true"});
  request.env = {{"PATH", "/tmp"}};
  EXPECT_THAT(planned(request).exec_paths, Contains("/usr/bin/true"));
  EXPECT_THAT(planned(request).exec_paths, Not(Contains("/tmp/true")));
}

TEST(Environment, RefusesWhatIsNoName) {
  for (const std::string name : {"", "A=B", "A\nB", "\x1b[2J"}) {
    const Error error = refused(with_env({{name, "x"}}));
    EXPECT_EQ(error.code, ErrorCode::kInvalid);
    EXPECT_THAT(error.detail, HasSubstr("is not a variable's name"));
    EXPECT_EQ(error.fix, "use NAME=VALUE");
  }
}

TEST(Environment, RefusesANulAndTooMuch) {
  EXPECT_EQ(refused(with_env({{"A", std::string("x\0y", 3)}})).detail, "env with a NUL");
  EXPECT_EQ(refused(with_env({{"A", std::string(128 * 1024, 'x')}})).detail,
            "env: one string over 128K");
  const std::string hundred(100 * 1024, 'x');
  EXPECT_EQ(refused(with_env({{"A", hundred},
                              {"B", hundred},
                              {"C", hundred},
                              {"D", hundred},
                              {"E", hundred},
                              {"F", hundred}}))
                .detail,
            "env: over 512K together");
}

TEST(Environment, BoundsThreadPoolsByCpusAndByPids) {
  policy::Policy policy = default_policy();
  policy.limits.cpus_milli = 4000;
  EXPECT_THAT(planned(python(), synthetic_host(), policy).env, Contains("OMP_NUM_THREADS=4"));
  policy.limits.pids = 16;
  EXPECT_THAT(planned(python(), synthetic_host(), policy).env, Contains("OMP_NUM_THREADS=2"));
  policy.limits.pids = 1;
  EXPECT_THAT(planned(python(), synthetic_host(), policy).env, Contains("OMP_NUM_THREADS=1"));
}

TEST(Environment, KeepsNodesHeapWithinTheMemoryLimit) {
  policy::Policy policy = default_policy();
  EXPECT_THAT(planned(python()).env, Contains("NODE_OPTIONS=--max-old-space-size=192"));
  policy.limits.memory = 8 * policy::kMiB;
  EXPECT_THAT(planned(python(), synthetic_host(), policy).env,
              Contains("NODE_OPTIONS=--max-old-space-size=16"));
}

}  // namespace
}  // namespace sbx::plan::test
