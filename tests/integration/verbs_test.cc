// doctor, selftest, explain, and the questions that run nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Verbs : public SandboxTest {};
SBX_AS_BOTH_CALLERS(Verbs);

TEST_P(Verbs, DoctorNamesEachCheckAndItsState) {
  const Finished finished = run({"doctor", "--json"});
  const json report = json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << finished.out << finished.err;
  EXPECT_EQ(finished.exit_code, report["ok"] == true ? 0 : 1);
  for (const json& check : report["checks"]) {
    EXPECT_THAT(check["state"].get<std::string>(), AnyOf("ok", "degraded", "missing"));
    EXPECT_EQ(check["state"] == "ok", check["fix"] == "") << check.dump();
  }
  EXPECT_THAT(run({"doctor"}).out, HasSubstr("kernel"));
}

TEST_P(Verbs, DoctorSaysWhatARunFinds) {
  const bool good = run({"doctor"}).exit_code == 0;
  EXPECT_EQ(run({"-c", "pass"}).exit_code == 0, good);
}

TEST_P(Verbs, SelftestPassesAndScores) {
  const Finished finished = run({"selftest", "--json"});
  const json report = json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << finished.out << finished.err;
  for (const json& attack : report["cases"]) {
    EXPECT_THAT(attack["state"].get<std::string>(), AnyOf("pass", "n.a.")) << attack.dump();
  }
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_GE(report["passed"].get<int>(), 15);
}

TEST_P(Verbs, ExplainTellsThePlanAndRunsNothing) {
  const Finished finished = run({"explain", "-t", "7", "-c", "open('/output/x', 'w')"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("7"));
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(run({"explain"}).exit_code, 0);
}

TEST_P(Verbs, WhatAProfileLoosensIsSaidByExplainAndByARun) {
  const std::string head = "name = \"mine\"\ndescription = \"x\"\n[seccomp]\n";
  const std::string loose = directory().write("loose.toml", head + "allow = [\"ptrace\"]\n");
  const std::string tight = directory().write("tight.toml", head + "deny = { pipe = \"EPERM\" }\n");
  const std::string said = "no longer hostile";
  EXPECT_THAT(run({"explain", "--profile", loose}).out, HasSubstr(said));
  EXPECT_THAT(run({"explain", "--profile", tight}).out, Not(HasSubstr(said)));
  EXPECT_EQ(run({"--profile", loose, "--", "/bin/true"}).err,
            "sbx-run: layer seccomp was loosened by the profile mine: no longer hostile: ptrace\n");
  EXPECT_EQ(run({"--profile", tight, "--", "/bin/true"}).err, "");
  const json result = run_json({"--profile", loose, "--", "/bin/true"});
  EXPECT_THAT(result["layers"].dump(), HasSubstr("profile mine; no longer hostile: ptrace"));
  const std::string past = directory().write("past.toml", head + "allow = [\"@io_uring\"]\n");
  EXPECT_THAT(run({"--profile", past, "--", "/bin/true"}).err, HasSubstr("opened: io_uring_enter"));
}

TEST_P(Verbs, PrintConfigIsTheTemplate) {
  const Finished finished = run({"--print-config"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, HasSubstr("uid_base"));
}

TEST_P(Verbs, HelpAndVersionAnswer) {
  EXPECT_THAT(run({"--help"}).out, HasSubstr("sbx-run [OPTIONS] FILE"));
  for (const std::string verb : {"doctor", "selftest", "explain"}) {
    const Finished page = run({verb, "--help"});
    EXPECT_EQ(page.exit_code, 0) << page.err;
    EXPECT_THAT(page.out, StartsWith("sbx-run " + verb + ": "));
  }
  EXPECT_THAT(run({"--version"}).out, HasSubstr("sbx-run "));
}

}  // namespace
}  // namespace sbx::test
