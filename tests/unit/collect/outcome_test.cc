// Composition of an Outcome, exit codes and the JSON of the contract.
#include <gmock/gmock.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "runtime/collect/make_outcome.h"

namespace sbx::collect {
namespace {

using Json = nlohmann::ordered_json;
using supervise::Ending;
using ::testing::ElementsAre;

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> names;
  for (const auto& item : json.items()) names.push_back(item.key());
  return names;
}

Ending successful() {
  Ending ending;
  ending.exec_reached = true;
  ending.payload_wait_status = 0;
  ending.init_wait_status = 0;
  ending.out.head = "42\n";
  ending.out.total = 3;
  ending.setup = std::chrono::milliseconds(5);
  ending.total = std::chrono::milliseconds(30);
  return ending;
}

TEST(Outcome, ANewOneIsNotASuccess) {
  const Outcome outcome;
  EXPECT_FALSE(outcome.ok());
  EXPECT_EQ(process_exit_code(outcome), 125);
}

TEST(Outcome, ExitCodesOfTheProcessAreTheContracts) {
  const auto code = [](Status status, int exit_code) {
    Outcome outcome;
    outcome.status = status;
    outcome.exit_code = exit_code;
    return process_exit_code(outcome);
  };
  EXPECT_EQ(code(Status::kOk, 0), 0);
  EXPECT_EQ(code(Status::kExit, 3), 3);
  EXPECT_EQ(code(Status::kSignal, 139), 139);
  EXPECT_EQ(code(Status::kOom, 137), 137);
  EXPECT_EQ(code(Status::kTimeout, -1), 124);
  EXPECT_EQ(code(Status::kCpuTime, -1), 124);
  EXPECT_EQ(code(Status::kOutput, -1), 123);
  EXPECT_EQ(code(Status::kSecurity, -1), 159);
  EXPECT_EQ(code(Status::kCancelled, -1), 130);
  EXPECT_EQ(code(Status::kSandboxError, -1), 125);
}

TEST(Outcome, IsComposedFromTheEndingAndItsContext) {
  Ending ending = successful();
  ending.usage.emplace().cpu_usec = 1'500'000;
  ending.usage->memory_peak = 7;
  ending.denied = {{0xC000003E, 165, 2}};
  OutcomeContext context;
  context.id = "r1";
  context.language = "python";
  context.collect_limits_hit = {"files"};
  const Outcome outcome = make_outcome(ending, std::move(context));
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.id, "r1");
  EXPECT_EQ(outcome.stdout_bytes, "42\n");
  EXPECT_DOUBLE_EQ(outcome.usage->cpu_seconds, 1.5);
  EXPECT_DOUBLE_EQ(outcome.duration_seconds, 0.03);
  EXPECT_DOUBLE_EQ(outcome.timings.run, 0.025);
  EXPECT_THAT(outcome.limits_hit, ElementsAre("files"));
  ASSERT_EQ(outcome.denials.size(), 1U);
  EXPECT_EQ(outcome.denials[0].syscall, "mount");
  EXPECT_EQ(outcome.denials[0].tier, "deny");
  EXPECT_EQ(outcome.denials[0].count, 2U);
}

TEST(Outcome, LayerFailuresAreAppliedToTheReport) {
  Ending ending = successful();
  ending.layer_failures = {{policy::Layer::kLandlock, "landlock_restrict_self", EOPNOTSUPP}};
  OutcomeContext context;
  context.layers = {{"landlock", policy::LayerState::kHeld, "ABI 7"},
                    {"seccomp", policy::LayerState::kHeld, ""}};
  const Outcome outcome = make_outcome(ending, std::move(context));
  EXPECT_EQ(outcome.layers[0].state, policy::LayerState::kMissing);
  EXPECT_EQ(outcome.layers[0].detail, "landlock_restrict_self: Operation not supported");
  EXPECT_EQ(outcome.layers[1].state, policy::LayerState::kHeld);
}

TEST(Outcome, InitsDeathIsJudgedByTheLayerUidSeparation) {
  Ending ending;
  ending.exec_reached = true;
  ending.init_wait_status = SIGKILL;
  for (const auto& [state, status] :
       {std::pair{policy::LayerState::kHeld, Status::kSandboxError},
        std::pair{policy::LayerState::kDegraded, Status::kSecurity}}) {
    OutcomeContext context;
    context.layers = {{"uid_separation", state, ""}};
    EXPECT_EQ(make_outcome(ending, std::move(context)).status, status);
  }
}

TEST(Outcome, ACollectorThatFailedIsNeverASuccessAndKeepsWhatCame) {
  OutcomeContext context;
  context.collect_failure = invalid("the collector ended before the walk did");
  context.collect_failure->stage = "collect";
  context.files = {{.path = "a"}};
  const Outcome outcome = make_outcome(successful(), std::move(context));
  EXPECT_EQ(outcome.status, Status::kSandboxError);
  EXPECT_EQ(outcome.error->step, "collect");
  EXPECT_EQ(outcome.stdout_bytes, "42\n");
  EXPECT_EQ(outcome.files.size(), 1U);
}

TEST(Outcome, ARefusedRunIsASandboxErrorWithTheFix) {
  const Outcome outcome =
      make_refusal(host_lacks("cgroup", EACCES, "no delegated subtree", "log in"), {});
  EXPECT_EQ(outcome.status, Status::kSandboxError);
  EXPECT_EQ(outcome.error->code, "host");
  EXPECT_EQ(outcome.error->fix, "log in");
}

TEST(OutcomeJson, HasNoFiguresWhereNothingMeasured) {
  Ending unmeasured = successful();
  unmeasured.usage.reset();
  EXPECT_TRUE(Json::parse(to_json(make_outcome(unmeasured, {})))["usage"].is_null());
}

TEST(OutcomeJson, HasTheContractsKeysInItsOrder) {
  OutcomeContext context;
  context.files = {{.path = "a.csv", .size = 1, .content = "x"}};
  Ending measured = successful();
  measured.usage = cgroup::Usage{};
  const Json json = Json::parse(to_json(make_outcome(measured, std::move(context))));
  EXPECT_THAT(keys(json), ElementsAre("id", "status", "ok", "exit_code", "signal", "timed_out",
                                      "duration_seconds", "stdout", "stdout_dropped", "stderr",
                                      "stderr_dropped", "files", "refused", "denials", "limits_hit",
                                      "error", "usage", "limits", "notes", "layers", "start",
                                      "image", "profile", "language", "timings"));
  EXPECT_THAT(keys(json["files"][0]),
              ElementsAre("path", "size", "sha256", "media_type", "content_base64"));
  EXPECT_THAT(keys(json["usage"]), ElementsAre("cpu_seconds", "memory_peak", "pids_peak",
                                               "oom_kills", "throttled_seconds", "pids_refused"));
  EXPECT_THAT(keys(json["timings"]), ElementsAre("setup", "run", "collect"));
  EXPECT_THAT(keys(json["image"]), ElementsAre("name", "digest"));
  EXPECT_EQ(json["status"], "ok");
  EXPECT_EQ(json["exit_code"], 0);
  EXPECT_TRUE(json["signal"].is_null());
  EXPECT_TRUE(json["error"].is_null());
  EXPECT_EQ(json["files"][0]["content_base64"], "eA==");
}

TEST(OutcomeJson, WritesLimitsUnderTheirContractNames) {
  const Json json = Json::parse(to_json(Outcome{}));
  ASSERT_EQ(json["limits"].size(), policy::limit_fields().size());
  EXPECT_EQ(json["limits"]["memory"], 268435456);
  EXPECT_EQ(json["limits"]["cpus"], 0.5);
  EXPECT_EQ(json["limits"]["network"], "none");
  EXPECT_TRUE(json["limits"]["cpu_seconds"].is_null());
}

TEST(OutcomeJson, BytesThatAreNotUtf8AreReplacedAndSentAsBase64Exactly) {
  Outcome outcome;
  outcome.stdout_bytes = "a\xFF";
  outcome.stderr_bytes = "caf\xC3\xA9";
  const Json json = Json::parse(to_json(outcome));
  EXPECT_EQ(json["stdout"], "a\xEF\xBF\xBD");
  EXPECT_EQ(json["stdout_base64"], "Yf8=");
  EXPECT_EQ(json["stderr"], "caf\xC3\xA9");
  EXPECT_FALSE(json.contains("stderr_base64"));
}

TEST(OutcomeJson, HalvesOfTwoCharactersDoNotMeetAtTheCutAsAThird) {
  Outcome outcome;
  outcome.stdout_bytes = "\xC3\xA9";  // the first half of one character, the second of another
  outcome.stdout_head = 1;
  outcome.stdout_dropped = 10;
  const Json json = Json::parse(to_json(outcome));
  EXPECT_EQ(json["stdout"], "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(json["stdout_base64"], "w6k=");
}

TEST(OutcomeJson, IsUtf8WhateverTheStringsHold) {
  Outcome outcome;
  outcome.error = ErrorInfo{.code = "internal", .step = "\xFF", .detail = "\xFE"};
  outcome.refused = {{"p\xFF", "r\xFF"}};
  outcome.duration_seconds = std::numeric_limits<double>::quiet_NaN();
  const Json json = Json::parse(to_json(outcome));
  EXPECT_EQ(json["duration_seconds"], 0.0);
  EXPECT_EQ(json["error"]["step"], "\xEF\xBF\xBD");
  EXPECT_THAT(keys(json["error"]), ElementsAre("code", "step", "errno", "detail", "fix"));
}

TEST(OutcomeJson, FlagsTheSecondOfTwoEqualNames) {
  Outcome outcome;
  outcome.files = {{.path = "a"}, {.path = "b", .note = "same name as \"a\" …"}};
  const Json json = Json::parse(to_json(outcome));
  EXPECT_FALSE(json["files"][0].contains("note"));
  EXPECT_TRUE(json["files"][1].contains("note"));
}

}  // namespace
}  // namespace sbx::collect
