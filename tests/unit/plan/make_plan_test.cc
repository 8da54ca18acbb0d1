// What a request gets wrong, and how it is told.
#include <gmock/gmock.h>

#include "tests/unit/plan/synthetic.h"

namespace sbx::plan::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Request, NeedsALanguageOrACommand) {
  expect_invalid(refused(Request{}), "give either a language with code, or a command to run");
}

TEST(Request, MayNotHaveALanguageAndACommand) {
  Request both = python();
  both.argv = {"/bin/true"};
  expect_invalid(refused(both), "give either a language with code, or a command to run");
}

TEST(Request, WithAnUnknownLanguageIsToldTheKnownOnes) {
  Request request = python();
  request.language = "cobol";
  const Error error = refused(request);
  expect_invalid(error, "unknown language 'cobol'");
  EXPECT_EQ(error.fix, "known languages: bash, javascript, python");
}

TEST(Request, WithAnAliasGetsTheLanguagesOwnName) {
  Request request;
  request.language = "js";
  EXPECT_EQ(planned(request).language, "javascript");
}

TEST(Code, IsAcceptedAtTheLimitAndRefusedPastIt) {
  EXPECT_EQ(planned(python(std::string(policy::kMaxCodeBytes, '#'))).language, "python");
  expect_invalid(refused(python(std::string(policy::kMaxCodeBytes + 1, '#'))),
                 "code of 16777217 is over the limit of 16M");
}

TEST(Code, IsTheOnlyFileOfCodeAndOnlyALanguageHasOne) {
  const Request request = python("x = 1");  // the plan points into it
  const Plan plan = planned(request);
  ASSERT_EQ(plan.fill.size(), 1U);
  EXPECT_EQ(plan.tmpfs.at(plan.fill[0].tmpfs).target, "/code");
  EXPECT_EQ(plan.fill[0].path, "main.py");
  EXPECT_EQ(plan.fill[0].content, "x = 1");
  EXPECT_EQ(plan.fill[0].mode, 0444U);
  EXPECT_TRUE(planned(command({"/bin/true"})).fill.empty());
}

TEST(Command, ThatIsEmptyIsRefused) {
  expect_invalid(refused(command({""})), "no program to run");
}

TEST(Command, WithASlashIsTakenAsItIs) {
  EXPECT_THAT(planned(command({"bin/x"})).exec_paths, ElementsAre("bin/x"));
  EXPECT_THAT(planned(command({"/opt/x"})).exec_paths, ElementsAre("/opt/x"));
}

TEST(Command, WithoutASlashIsLookedForAlongThePath) {
  EXPECT_THAT(planned(command({"true"})).exec_paths,
              ElementsAre("/usr/local/bin/true", "/usr/bin/true", "/bin/true"));
}

TEST(Command, KeepsItsArguments) {
  Request request = command({"echo", "a b"});
  request.args = {"", "c"};
  EXPECT_THAT(planned(request).argv, ElementsAre("echo", "a b", "", "c"));
  Request script = python();
  script.args = {"--flag"};
  EXPECT_THAT(planned(script).argv, ElementsAre("/usr/bin/python3", "/code/main.py", "--flag"));
}

TEST(Arguments, WithANulAreRefused) {
  expect_invalid(refused(command({"echo", std::string("a\0b", 3)})), "arguments with a NUL");
}

TEST(Arguments, AreCountedAtTheLimitAndPastIt) {
  EXPECT_EQ(planned(command(std::vector<std::string>(1024, "x"))).argv.size(), 1024U);
  expect_invalid(refused(command(std::vector<std::string>(1025, "x"))),
                 "arguments: 1025 strings, at most 1024 are allowed");
}

TEST(Arguments, HaveABoundForOneAndForAll) {
  const std::string longest(128 * 1024 - 1, 'x');
  EXPECT_EQ(planned(command({"echo", longest})).argv.size(), 2U);
  expect_invalid(refused(command({"echo", longest + "x"})), "one string over 128K");
  expect_invalid(refused(command({"echo", longest, longest, longest, longest})),
                 "arguments: over 512K together");
}

TEST(HostLimits, BelowANofileAreNamedWithBothFigures) {
  HostFacts host = synthetic_host();
  host.hard_nofile = 255;
  expect_invalid(refused(python(), host), "nofile 256 is above this host's hard limit 255");
  host.hard_nofile = 256;
  EXPECT_EQ(planned(python(), host).language, "python");
}

TEST(HostLimits, BelowAnFsizeAreNamedWithBothFigures) {
  HostFacts host = synthetic_host();
  host.hard_fsize = 32 * policy::kMiB;
  expect_invalid(refused(python(), host), "fsize 64M is above this host's hard limit 32M");
}

TEST(Rlimits, ForACoreIsOneBecauseZeroStopsNoPipe) {
  for (const Rlimit& limit : planned(python()).rlimits) {
    if (limit.name == "core") {
      EXPECT_EQ(limit.value, 1U);
    }
  }
}

TEST(Rlimits, NobodyChoseAreLoweredToTheHosts) {
  HostFacts host = synthetic_host();
  host.hard_memlock = 4096;
  host.hard_msgqueue = 0;
  host.hard_sigpending = 7;
  for (const Rlimit& limit : planned(python(), host).rlimits) {
    if (limit.name == "memlock") {
      EXPECT_EQ(limit.value, 4096U);
    }
    if (limit.name == "msgqueue") {
      EXPECT_EQ(limit.value, 0U);
    }
    if (limit.name == "sigpending") {
      EXPECT_EQ(limit.value, 7U);
    }
  }
}

TEST(VisibleCpus, AreTheLimitRoundedUpWithinWhatTheHostHas) {
  policy::Policy policy = default_policy();
  const auto visible = [&policy](std::uint32_t milli) {
    policy.limits.cpus_milli = milli;
    return planned(python(), synthetic_host(), policy).visible_cpus;
  };
  EXPECT_EQ(visible(1), 1U);
  EXPECT_EQ(visible(1000), 1U);
  EXPECT_EQ(visible(1001), 2U);
  EXPECT_EQ(visible(64'000), 4U);
}

TEST(Errors, SayNothingOfTheHostsPaths) {
  Request request = python();
  request.language = "../../etc";
  EXPECT_THAT(to_string(refused(request)), StartsWith("unknown language"));
}

}  // namespace
}  // namespace sbx::plan::test
