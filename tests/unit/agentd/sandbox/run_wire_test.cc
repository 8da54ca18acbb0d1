#include "agentd/sandbox/run_wire.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace agentd::sandbox {
namespace {

using Kind = SandboxFailure::Kind;

// A result as contract.md has it.
nlohmann::json result() {
  return nlohmann::json::parse(R"({
    "id":"ab","status":"exit","ok":false,"exit_code":1,"signal":null,"timed_out":false,
    "duration_seconds":1.5,"stdout":"o","stdout_dropped":2,"stderr":"e","stderr_dropped":0,
    "files":[{"path":"a","size":1,"sha256":"s","media_type":"text/plain","content_base64":"eA=="}],
    "refused":[{"path":"l","reason":"a link"}],"denials":[],"limits_hit":["memory"],"error":null,
    "usage":{},"limits":{},"notes":[{"code":"memory","text":"t","source":"kernel"}],"layers":[],
    "start":"cold","image":{"name":"default","digest":"d"},"profile":"default",
    "language":"python","timings":{}})");
}

TEST(RunWire, ARequestHasWhatTheSandboxTakes) {
  const auto body = nlohmann::json::parse(run_body({.language = "python",
                                                    .code = "print('\xff')",
                                                    .files = {{"a.csv", "eA=="}},
                                                    .wall = std::chrono::milliseconds(2500)}));
  EXPECT_EQ(body["language"], "python");
  EXPECT_EQ(body["limits"].dump(), R"({"wall_seconds":2.5})");
  EXPECT_EQ(body["files"][0]["content_base64"], "eA==");
  EXPECT_EQ(body["collect"], "content");
  EXPECT_EQ(body.size(), 5U);
}

TEST(RunWire, ARequestMayAskForMoreOfStdout) {
  const auto body = nlohmann::json::parse(run_body({.stdout_bytes = 4096}));
  EXPECT_EQ(body["limits"]["stdout_bytes"], 4096);
}

TEST(RunWire, AResultIsRead) {
  const RunOutcome outcome = parse_run(result().dump());
  ASSERT_TRUE(std::holds_alternative<RunResult>(outcome))
      << std::get<SandboxFailure>(outcome).detail;
  const auto& run = std::get<RunResult>(outcome);
  EXPECT_EQ(run.status, "exit");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.signal, std::nullopt);
  EXPECT_EQ(run.out_dropped, 2U);
  EXPECT_EQ(run.files.at(0).content, "x");
  EXPECT_EQ(run.refused.at(0).reason, "a link");
  EXPECT_EQ(run.limits_hit, std::vector<std::string>{"memory"});
  EXPECT_EQ(run.notes.at(0).source, "kernel");
}

TEST(RunWire, WhatAResultHasBesideIsReadOver) {
  auto json = result();
  json["usage"] = json["layers"] = {{"status", "oom"}, {"files", 7}};
  json["timings"] = {{"stdout", "\",\"status\":\"oom\""}};
  const RunOutcome outcome = parse_run(json.dump());
  ASSERT_TRUE(std::holds_alternative<RunResult>(outcome))
      << std::get<SandboxFailure>(outcome).detail;
  EXPECT_EQ(std::get<RunResult>(outcome).status, "exit");
  EXPECT_EQ(std::get<RunResult>(outcome).files.at(0).content, "x");
}

TEST(RunWire, WhereBytesWereDroppedIsKnownFromTheLimit) {
  const auto cut_of = [](const nlohmann::json& json) {
    return std::get<RunResult>(parse_run(json.dump())).out_cut;
  };
  auto json = result();
  json["stdout"] = "aaabb";
  EXPECT_EQ(cut_of(json), 5U) << "not said: nothing is known to be whole";
  json["limits"] = {{"stdout_bytes", 5}};
  EXPECT_EQ(cut_of(json), 3U) << "the head has the odd byte";
  json["stdout"] =
      "a\xEF\xBF\xBD\xEF\xBF\xBD"
      "bb";  // two bytes that are no UTF-8
  json["stdout_base64"] = "Yf//YmI=";
  EXPECT_EQ(cut_of(json), 7U);
  json["stdout_dropped"] = 0;
  EXPECT_EQ(cut_of(json), 0U);
}

TEST(RunWire, TheSandboxsOwnFailureIsNoResult) {
  auto json = result();
  json["status"] = "sandbox_error";
  json["error"] = {
      {"code", "host"}, {"step", "mount"}, {"errno", 1}, {"detail", "no"}, {"fix", "f"}};
  const auto failed = parse_run(json.dump());
  EXPECT_EQ(std::get<SandboxFailure>(failed).kind, Kind::kFailed);
  EXPECT_EQ(std::get<SandboxFailure>(failed).fix, "f");
  json["status"] = "cancelled";
  EXPECT_EQ(std::get<SandboxFailure>(parse_run(json.dump())).kind, Kind::kFailed);
}

TEST(RunWire, WhatIsNoResultIsLost) {
  for (const std::string text : {"", "{}", "[]", "null", "{\"status\":\"ok\"}", "\xff"}) {
    EXPECT_EQ(std::get<SandboxFailure>(parse_run(text)).kind, Kind::kLost) << text;
  }
  auto json = result();
  json["files"] = 7;
  EXPECT_EQ(std::get<SandboxFailure>(parse_run(json.dump())).kind, Kind::kLost);
}

TEST(RunWire, ADamagedFileIsLostAndNotEmpty) {
  auto json = result();
  for (const char* damaged : {"eA=", "e A==", "eA==\n", "*"}) {
    json["files"][0]["content_base64"] = damaged;
    const RunOutcome outcome = parse_run(json.dump());
    ASSERT_TRUE(std::holds_alternative<SandboxFailure>(outcome)) << damaged;
    EXPECT_EQ(std::get<SandboxFailure>(outcome).kind, Kind::kLost);
  }
}

TEST(RunWire, ProblemsSayWhetherToWait) {
  const SandboxFailure busy = parse_problem(429, R"({"detail":"full","fix":"wait"})");
  EXPECT_EQ(busy.kind, Kind::kBusy);
  EXPECT_EQ(busy.fix, "wait");
  EXPECT_EQ(parse_problem(503, "").kind, Kind::kBusy);
  const SandboxFailure refused = parse_problem(422, R"({"detail":"no","field":"limits.memory"})");
  EXPECT_EQ(refused.kind, Kind::kRefused);
  EXPECT_NE(refused.detail.find("limits.memory"), std::string::npos);
}

// As sbxd sends it, without what agentd does not read.
nlohmann::json info() {
  return nlohmann::json::parse(R"({
    "version":"1","languages":[{"name":"python","aliases":["py"],"file":"/code/main.py",
      "syntax_error_pattern":"^E","packages":{"numpy":"1.24","six":null}}],
    "limits":{"wall_seconds":30,"cpus":0.5,"memory":1,"pids":2,"input":3,"output":4,"work":5,"tmp":6,
      "stdout_bytes":65536,"network":"none"},
    "ceilings":{"stdout_bytes":1048576},"layers":[{"name":"seccomp","state":"held"}]})");
}

TEST(SandboxInfos, AreRead) {
  auto json = info();
  auto read = parse_info(json.dump());
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_NE(read->language("py"), nullptr);
  EXPECT_EQ(read->language("py")->file, "/code/main.py");
  EXPECT_EQ(read->input + read->output + read->work + read->tmp, 18U);
  EXPECT_FALSE(read->network);
  EXPECT_EQ(read->stdout_bytes, 65536U);
  EXPECT_EQ(read->stdout_most, 1048576U);
  EXPECT_EQ(read->missing_layers.size(), 13U);
  json["limits"]["network"] = "host";
  json["ceilings"].erase("stdout_bytes");
  read = parse_info(json.dump());
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->network);
  EXPECT_GT(read->stdout_most, std::uint64_t{1} << 40U) << "what has no ceiling is not listed";
}

TEST(SandboxInfos, WhatIsNoneIsAnError) {
  for (const char* text : {"", "{}", "[]", R"({"version":"1"})"}) EXPECT_FALSE(parse_info(text));
  for (const char* member : {"languages", "limits", "ceilings", "layers"}) {
    auto json = info();
    json.erase(member);
    EXPECT_FALSE(parse_info(json.dump())) << member;
  }
}

}  // namespace
}  // namespace agentd::sandbox
