#include "runtime/daemon/run_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/base64.h"
#include "runtime/base/sha256.h"
#include "tests/unit/daemon/rules.h"
#include "tests/unit/plan/synthetic.h"

namespace sbx::daemon {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RunRequestText : public ::testing::Test {
 protected:
  [[nodiscard]] RunRequest parse(std::string_view body, RunPlace place = RunPlace::kAlone) const {
    auto parsed = parse_run_request(body, rules_, place);
    const auto* problem = std::get_if<http::Problem>(&parsed);
    EXPECT_EQ(problem, nullptr) << body << ": " << (problem == nullptr ? "" : problem->detail);
    return problem == nullptr ? std::get<RunRequest>(std::move(parsed)) : RunRequest{};
  }
  [[nodiscard]] http::Problem refused(std::string_view body,
                                      RunPlace place = RunPlace::kAlone) const {
    auto parsed = parse_run_request(body, rules_, place);
    const auto* problem = std::get_if<http::Problem>(&parsed);
    EXPECT_NE(problem, nullptr) << body;
    return problem == nullptr ? http::Problem{} : *problem;
  }
  // `rest` behind a language and its code.
  [[nodiscard]] http::Problem refused_field(const std::string& rest) const {
    return refused(R"({"language":"python","code":"",)" + rest + "}");
  }

  RequestRules rules_ = test::default_rules();
};

TEST_F(RunRequestText, TakesEveryFieldOfTheContract) {
  const RunRequest run = parse(
      R"({"language":"sh","code":"x","args":["a","b"],"stdin":"in",
    "files":[{"name":"d.csv","content_base64":"YSxi"}],"env":{"K":"V"},
    "limits":{"memory":"64M","wall_seconds":2.5,"pids":8,"cpu_seconds":null,"output_kills":true},
    "profile":"default","collect":"list"})");
  EXPECT_EQ(run.request.language, "bash") << "an alias becomes the name";
  EXPECT_EQ(run.request.code, "x");
  EXPECT_THAT(run.request.args, ElementsAre("a", "b"));
  EXPECT_EQ(run.request.stdin_text, "in");
  ASSERT_EQ(run.request.files.size(), 1U);
  EXPECT_EQ(run.request.files[0].name, "d.csv");
  EXPECT_EQ(run.request.files[0].content, "a,b");
  EXPECT_THAT(run.request.env, ElementsAre(std::pair<std::string, std::string>("K", "V")));
  EXPECT_EQ(run.policy.limits.memory, 64 * policy::kMiB);
  EXPECT_EQ(run.policy.limits.wall_seconds, std::chrono::milliseconds(2500));
  EXPECT_EQ(run.policy.limits.pids, 8U);
  EXPECT_TRUE(run.policy.limits.output_kills);
  EXPECT_EQ(run.collect, collect::CollectMode::kList);
  EXPECT_EQ(run.program_sha256, sha256_of("x"));
  EXPECT_EQ(run.inputs_sha256.size(), 64U);
}

TEST_F(RunRequestText, ArgvStandsAlone) {
  const RunRequest run = parse(R"({"argv":["ls","-l"]})");
  EXPECT_THAT(run.request.argv, ElementsAre("ls", "-l"));
  EXPECT_TRUE(run.request.language.empty());
  EXPECT_EQ(run.program_sha256, sha256_of(std::string("ls\0-l\0", 6)));
  EXPECT_TRUE(run.inputs_sha256.empty());
}

TEST_F(RunRequestText, NeedsAProgramAndOnlyOne) {
  EXPECT_EQ(refused("{}").code, "missing_field");
  EXPECT_EQ(refused("{}").field, "language");
  EXPECT_EQ(refused(R"({"language":"python"})").field, "code");
  EXPECT_EQ(refused(R"({"language":"python","code":"","argv":["ls"]})").code, "conflicting_fields");
  EXPECT_EQ(refused(R"({"code":"","argv":["ls"]})").code, "conflicting_fields");
  EXPECT_EQ(refused(R"({"code":"1"})").field, "language");
  EXPECT_EQ(refused(R"({"argv":[]})").code, "invalid_value");
  EXPECT_EQ(refused(R"({"argv":[""]})").code, "invalid_value");
}

TEST_F(RunRequestText, AnUnknownFieldIsNamedWithThoseThatThereAre) {
  const http::Problem problem = refused_field(R"("limit":{})");
  EXPECT_EQ(problem.status, 400);
  EXPECT_EQ(problem.code, "unknown_field");
  EXPECT_EQ(problem.field, "limit");
  EXPECT_THAT(problem.allowed, Contains("limits"));
  EXPECT_THAT(problem.allowed, Not(Contains("wait")));
}

TEST_F(RunRequestText, OnlyARunOfASessionCanWait) {
  EXPECT_EQ(refused_field(R"("wait":true)").code, "unknown_field");
  EXPECT_TRUE(parse(R"({"argv":["ls"],"wait":true})", RunPlace::kSession).wait);
  EXPECT_FALSE(parse(R"({"argv":["ls"]})", RunPlace::kSession).wait);
}

TEST_F(RunRequestText, AWrongTypeIsNamedWithBoth) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("args":"a")", "args"},
      {R"("args":["a",1])", "args[1]"},
      {R"("stdin":5)", "stdin"},
      {R"("files":{})", "files"},
      {R"("files":[1])", "files[0]"},
      {R"("files":[{"name":1,"content_base64":""}])", "files[0].name"},
      {R"("env":[])", "env"},
      {R"("env":{"A":1})", "env.A"},
      {R"("limits":[])", "limits"},
      {R"("limits":{"memory":1.5})", "limits.memory"},
      {R"("limits":{"memory":null})", "limits.memory"},
      {R"("limits":{"pids":"8"})", "limits.pids"},
      {R"("limits":{"pids":1e99})", "limits.pids"},
      {R"("limits":{"wall_seconds":"2"})", "limits.wall_seconds"},
      {R"("limits":{"output_kills":1})", "limits.output_kills"},
      {R"("limits":{"network":true})", "limits.network"},
      {R"("profile":null)", "profile"},
      {R"("collect":true)", "collect"}};
  for (const auto& [rest, field] : wrong) {
    const http::Problem problem = refused_field(rest);
    EXPECT_EQ(problem.status, 400) << rest;
    EXPECT_EQ(problem.code, "wrong_type") << rest;
    EXPECT_EQ(problem.field, field) << rest;
  }
  EXPECT_EQ(refused("[]").code, "wrong_type");
  EXPECT_EQ(refused("null").code, "wrong_type");
}

TEST_F(RunRequestText, AWrongValueIsNamedWithItsField) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("limits":{"memory":-1})", "limits.memory"},
      {R"("limits":{"memory":"-1M"})", "limits.memory"},
      {R"("limits":{"memory":"1T"})", "limits.memory"},
      {R"("limits":{"wall_seconds":-1})", "limits.wall_seconds"},
      {R"("limits":{"wall_seconds":0})", "limits.wall_seconds"},
      {R"("limits":{"wall_seconds":1e99})", "limits.wall_seconds"},
      {R"("limits":{"pids":0})", "limits.pids"},
      {R"("limits":{"network":"bridge"})", "limits.network"},
      {R"("env":{"A=B":"1"})", "env.A=B"},
      {R"("env":{"":"1"})", "env."},
      {R"("env":{"A":"\u0000"})", "env.A"},
      {R"("args":["\u0000"])", "args[0]"},
      {R"("collect":"all")", "collect"},
      {R"("files":[{"name":"a","content_base64":"!"}])", "files[0].content_base64"},
      {R"("files":[{"name":"a","content_base64":"YQ"}])", "files[0].content_base64"}};
  for (const auto& [rest, field] : wrong) {
    const http::Problem problem = refused_field(rest);
    EXPECT_EQ(problem.status, 422) << rest << problem.detail;
    EXPECT_EQ(problem.code, "invalid_value") << rest;
    EXPECT_EQ(problem.field, field) << rest;
  }
}

TEST_F(RunRequestText, AFileNameIsOneComponent) {
  const auto with_name = [](const std::string& name) {
    return R"("files":[{"name":")" + name + R"(","content_base64":""}])";
  };
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("/"),
        std::string("../a"), std::string("a\\u0000b"), std::string(256, 'n')}) {
    EXPECT_EQ(refused_field(with_name(name)).field, "files[0].name") << name;
  }
  for (const std::string& name : {std::string(255, 'n'), std::string("..."), std::string(" ")}) {
    (void)parse(R"({"argv":["ls"],)" + with_name(name) + "}");
  }
  const http::Problem twice = refused_field(
      R"("files":[{"name":"a","content_base64":""},{"name":"a","content_base64":""}])");
  EXPECT_EQ(twice.field, "files[1].name");
}

TEST_F(RunRequestText, AFileHasItsTwoFieldsAndNoOther) {
  EXPECT_EQ(refused_field(R"("files":[{"name":"a"}])").code, "missing_field");
  EXPECT_EQ(refused_field(R"("files":[{"content_base64":""}])").field, "files[0].name");
  const http::Problem problem =
      refused_field(R"("files":[{"name":"a","content_base64":"","mode":7}])");
  EXPECT_EQ(problem.code, "unknown_field");
  EXPECT_EQ(problem.field, "files[0].mode");
}

TEST_F(RunRequestText, NamesAreLookedUpNeverOpened) {
  const http::Problem language = refused(R"({"language":"/etc/passwd","code":""})");
  EXPECT_EQ(language.code, "unknown_language");
  EXPECT_THAT(language.allowed, Contains("python"));
  for (const char* name : {"judge", "/etc/sbx/x.toml", "x.toml", "../default", ""}) {
    const http::Problem profile = refused_field(std::string(R"("profile":")") + name + "\"");
    EXPECT_EQ(profile.code, "unknown_profile") << name;
    EXPECT_THAT(profile.allowed, ElementsAre("default", "large"));
  }
}

TEST_F(RunRequestText, ALimitAboveItsCeilingIsRefusedWithBothFigures) {
  const http::Problem problem = refused_field(R"("limits":{"memory":"2G"})");
  EXPECT_EQ(problem.status, 422);
  EXPECT_EQ(problem.code, "above_ceiling");
  EXPECT_EQ(problem.field, "limits.memory");
  EXPECT_THAT(problem.detail, HasSubstr("2G"));
  EXPECT_THAT(problem.allowed, ElementsAre("1G"));
  EXPECT_EQ(refused_field(R"("limits":{"network":"host"})").code, "above_ceiling");
  EXPECT_EQ(parse(R"({"argv":["ls"],"limits":{"memory":"1G"}})").policy.limits.memory,
            1024 * policy::kMiB);
}

TEST_F(RunRequestText, ALimitOfTheWrongKindIsToldWhatItMustBe) {
  const auto detail = [&](const std::string& limit) {
    const http::Problem problem = refused_field("\"limits\":{" + limit + "}");
    EXPECT_EQ(problem.code, "wrong_type") << limit;
    return problem.detail;
  };
  EXPECT_EQ(
      detail(R"("memory":1.5)"),
      "limits.memory (bytes of memory, files included; no swap) must be a whole number of "
      "bytes, or a string like \"64M\", not a number with a fraction, an exponent or too many "
      "digits.");
  EXPECT_THAT(detail(R"("memory":18446744073709551616)"), HasSubstr("too many digits"));
  EXPECT_THAT(detail(R"("pids":"9")"), HasSubstr("must be a whole number, not a string"));
  EXPECT_THAT(detail(R"("output_kills":"yes")"), HasSubstr("must be true or false, not a string"));
  EXPECT_THAT(detail(R"("wall_seconds":"9")"), HasSubstr("must be a number, not a string"));
}

TEST_F(RunRequestText, NamesHaveNoControlCharacters) {
  const std::string good = R"("files":[{"name":"a","content_base64":""},)";
  for (const char* name : {R"(a\u0007)", R"(\n)", R"(\u007f)"}) {
    const http::Problem problem =
        refused_field(good + R"({"name":")" + name + R"(","content_base64":""}])");
    EXPECT_EQ(problem.code, "invalid_value") << name;
    EXPECT_EQ(problem.field, "files[1].name") << name;
  }
  EXPECT_THAT(refused_field(R"("env":{"A\u0007":""})").field, ::testing::StartsWith("env.A"));
}

// The part of the request that the plan found wrong, in the words of the API.
TEST_F(RunRequestText, WhatOnlyThePlanKnowsHasItsFieldToo) {
  const std::string code = R"({"language":"sh","code":"",)";
  const auto field = [&](const std::string& rest, const std::string& program) {
    const RunRequest run = parse(program + rest + "}");
    plan::HostFacts host = plan::test::synthetic_host();
    host.hard_fsize = 32 * policy::kMiB;
    const Error error = plan::test::refused(run.request, host, run.policy);
    EXPECT_EQ(error.code, ErrorCode::kInvalid) << rest;
    const http::Problem problem = invalid_request(error);
    EXPECT_EQ(problem.detail, error.detail);
    return problem.field;
  };
  const std::string fits = R"("limits":{"fsize":"1M"},)";
  const std::string word(200'000, 'w');
  EXPECT_EQ(field(R"("limits":{"fsize":"33M"})", code), "limits.fsize");
  EXPECT_EQ(field(R"("limits":{"nofile":1048576,"fsize":"33M"})", code), "limits.fsize");
  EXPECT_EQ(field(fits + R"("args":[")" + word + "\"]", code), "args");
  EXPECT_EQ(field(fits + R"("args":[")" + word + "\"]", R"({"argv":["ls"],)"), "argv");
  EXPECT_EQ(field(fits + R"("env":{"A":")" + word + "\"}", code), "env");
  EXPECT_EQ(field(R"("limits":{"input":"4K"},"files":[{"name":"a","content_base64":")" +
                      encode_base64(std::string(5000, 'x')) + "\"}]",
                  code),
            "files");
  EXPECT_EQ(field(R"("limits":{"memory":"1M"})", code), "limits.memory");
}

TEST_F(RunRequestText, AdviceIsInTheWordsOfTheApi) {
  EXPECT_EQ(fix_for_clients("raise --memory: files count in it"),
            "raise limits.memory: files count in it");
  EXPECT_EQ(fix_for_clients("--wall-seconds or --pids"), "limits.wall_seconds or limits.pids");
  EXPECT_EQ(fix_for_clients("give it another name: --input PATH:NAME"), "");
  EXPECT_EQ(fix_for_clients("give another name"), "give another name");
}

TEST_F(RunRequestText, WhatAProfileBringsAboveACeilingIsLowered) {
  ASSERT_TRUE(rules_.ceilings.set("memory", "100M"));
  EXPECT_EQ(parse(R"({"argv":["ls"]})").policy.limits.memory, 100 * policy::kMiB);
  EXPECT_EQ(parse(R"({"argv":["ls"],"profile":"large"})").policy.limits.memory, 100 * policy::kMiB);
}

TEST_F(RunRequestText, LimitsGoOnTopOfAProfileThatComesBehindThem) {
  const RunRequest run = parse(R"({"limits":{"pids":9},"profile":"large","argv":["ls"]})");
  EXPECT_EQ(run.policy.profile, "large");
  EXPECT_EQ(run.policy.limits.pids, 9U);
}

TEST_F(RunRequestText, LongValuesAreNotRepeatedInTheAnswer) {
  const std::string long_text(100'000, 'x');
  for (const std::string& rest :
       {"\"profile\":\"" + long_text + "\"", "\"limits\":{\"memory\":\"" + long_text + "\"}",
        "\"collect\":\"" + long_text + "\""}) {
    const http::Problem problem = refused_field(rest);
    EXPECT_LT(problem.detail.size() + problem.field.size(), 500U);
  }
}

}  // namespace
}  // namespace sbx::daemon
