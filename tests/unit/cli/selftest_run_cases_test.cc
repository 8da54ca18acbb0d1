#include "runtime/cli/selftest_run_cases.h"

#include <gtest/gtest.h>

#include <csignal>
#include <set>
#include <string>

#include "runtime/cli/selftest_control.h"
#include "runtime/policy/layers.h"
#include "runtime/policy/limits.h"

namespace sbx::cli {
namespace {

using collect::Status;

constexpr const char* kDone = "{\"probe\": \"x\", \"errno\": 0, \"value\": \"\"}\n";

const RunCase& find_run(std::string_view name) {
  for (const RunCase& attack : run_cases()) {
    if (attack.name == name) return attack;
  }
  ADD_FAILURE() << "no case " << name;
  return run_cases().front();
}

RunSeen run_ended(Status status, std::vector<std::string> limits_hit = {}) {
  RunSeen seen;
  seen.outcome.emplace();
  seen.outcome->status = status;
  seen.outcome->limits_hit = std::move(limits_hit);
  if (status == Status::kOk) seen.outcome->stdout_bytes = kDone;
  return seen;
}

RunControl control_of(RunSeen seen) {
  return {std::move(seen), std::nullopt};
}

RunControl outside_saying(std::string value) {
  Observation said;
  said.answered = true;
  said.value = std::move(value);
  return {std::nullopt, std::move(said)};
}

TEST(SelftestRunCases, EveryCaseHasANameOfItsOwnAndAControl) {
  std::set<std::string_view> names, classes;
  for (const AttackCase& attack : attack_cases()) names.insert(attack.name);
  for (const RunCase& attack : run_cases()) {
    EXPECT_TRUE(names.insert(attack.name).second) << attack.name;
    classes.insert(attack_class_name(attack.attack_class));
    ASSERT_NE(attack.held, nullptr) << attack.name;
    EXPECT_NE(attack.got_through != nullptr, !attack.outside.empty()) << attack.name;
    EXPECT_EQ(attack.outside.empty(), attack.outside_value.empty()) << attack.name;
    EXPECT_TRUE(attack.layer == "-" || policy::layer_from_name(attack.layer)) << attack.name;
  }
  EXPECT_EQ(classes, (std::set<std::string_view>{"files out", "killing", "memory"}));
}

// Nothing that did not take place holds, nor is it a control that got through.
TEST(SelftestRunCases, ARunThatWasNotOrFailedIsNeverAPass) {
  RunSeen not_run;
  not_run.trouble = "clone: EPERM";
  RunSeen failed = run_ended(Status::kSandboxError);
  for (const RunCase& attack : run_cases()) {
    EXPECT_EQ(judge_run(attack, not_run, control_of(not_run)), CaseState::kFail) << attack.name;
    EXPECT_EQ(judge_run(attack, failed, control_of(failed)), CaseState::kFail) << attack.name;
    if (attack.got_through == nullptr) continue;
    EXPECT_FALSE(attack.got_through(not_run)) << attack.name;
    EXPECT_FALSE(attack.got_through(failed)) << attack.name;
  }
}

TEST(SelftestRunCases, WhatGetsThroughFailsAndWhatHoldsInBothIsAFailedControl) {
  const RunCase& attack = find_run("memory of a process");
  const RunSeen oom = run_ended(Status::kOom, {"memory"});
  EXPECT_EQ(judge_run(attack, oom, control_of(run_ended(Status::kOk))), CaseState::kPass);
  EXPECT_EQ(judge_run(attack, run_ended(Status::kOk), control_of(run_ended(Status::kOk))),
            CaseState::kFail);
  EXPECT_EQ(judge_run(attack, oom, control_of(oom)), CaseState::kControlFailed);
  EXPECT_EQ(judge_run(attack, run_ended(Status::kTimeout), control_of(run_ended(Status::kOk))),
            CaseState::kFail)
      << "a time-out is no limit on memory";
  RunSeen gave_up = run_ended(Status::kOk);
  gave_up.outcome->stdout_bytes = "{\"probe\": \"x\", \"errno\": 12, \"value\": \"\"}\n";
  EXPECT_EQ(judge_run(attack, oom, control_of(gave_up)), CaseState::kControlFailed);
}

TEST(SelftestRunCases, ALimitThatTheHostRefusesIsNotApplicable) {
  const RunCase& attack = find_run("memory of a process");
  RunSeen refused;
  refused.refused = true;
  EXPECT_EQ(judge_run(attack, refused, control_of(refused)), CaseState::kNotApplicable);
  EXPECT_EQ(judge_run(attack, run_ended(Status::kOom, {"memory"}), control_of(refused)),
            CaseState::kNotApplicable);
  EXPECT_EQ(judge_run(attack, run_ended(Status::kOk), control_of(refused)), CaseState::kFail);
}

TEST(SelftestRunCases, WhatIsLeftFailsAndWhoSawNothingKnowsNothing) {
  const RunCase& attack = find_run("ignore every signal");
  const RunControl control = control_of(run_ended(Status::kOk));
  RunSeen seen = run_ended(Status::kTimeout, {"wall_seconds"});
  EXPECT_EQ(judge_run(attack, seen, control), CaseState::kFail) << "never up";
  seen.alive_during = 1;
  seen.alive_after = 0;
  EXPECT_EQ(judge_run(attack, seen, control), CaseState::kPass);
  seen.alive_after = 1;
  EXPECT_EQ(judge_run(attack, seen, control), CaseState::kFail);
  seen.alive_during = seen.alive_after = 0;
  EXPECT_EQ(judge_run(attack, seen, control), CaseState::kControlFailed);
}

TEST(SelftestRunCases, AForkBombEndsAtItsTimeOrAtTheMemoryOfRefusedForks) {
  const RunCase& attack = find_run("fork bomb");
  RunSeen many = run_ended(Status::kTimeout, {"pids"});
  many.outcome->usage.emplace().pids_peak = 64;
  many.alive_during = 1;
  many.alive_after = 0;
  for (const Status status : {Status::kTimeout, Status::kOom}) {
    RunSeen seen = run_ended(status, {"pids"});
    seen.outcome->usage.emplace().pids_peak = 16;
    seen.alive_during = 1;
    seen.alive_after = 0;
    EXPECT_EQ(judge_run(attack, seen, control_of(many)), CaseState::kPass);
    seen.alive_after = 1;
    EXPECT_EQ(judge_run(attack, seen, control_of(many)), CaseState::kFail) << "some are left";
    seen.alive_after = 0;
    seen.outcome->usage->pids_peak = 17;
    EXPECT_EQ(judge_run(attack, seen, control_of(many)), CaseState::kFail) << "over the cap";
  }
  EXPECT_EQ(judge_run(attack, run_ended(Status::kOk), control_of(many)), CaseState::kFail);
}

TEST(SelftestRunCases, ASignalOfItsOwnIsNotTakenForTheLimitOnMemory) {
  const RunCase& attack = find_run("its own SIGKILL is told as such");
  const RunControl control = control_of(run_ended(Status::kOk));
  RunSeen seen = run_ended(Status::kSignal);
  seen.outcome->signal = SIGKILL;
  EXPECT_EQ(judge_run(attack, seen, control), CaseState::kPass);
  EXPECT_EQ(judge_run(attack, run_ended(Status::kOom, {"memory"}), control), CaseState::kFail);
}

TEST(SelftestRunCases, WhatIsCollectedMustBeTheGoodFileAndNothingElse) {
  const RunCase& attack = find_run("link to a file");
  const RunControl control = outside_saying("taken by name");
  RunSeen seen = run_ended(Status::kOk);
  collect::CollectedFile good;
  good.path = good.raw_path = "good.txt";
  good.content = "good";
  seen.outcome->files = {good};
  EXPECT_EQ(judge_run(attack, seen, control), CaseState::kFail) << "refused without a word";
  seen.outcome->refused = {{"thing", "symbolic link"}};
  EXPECT_EQ(judge_run(attack, seen, control), CaseState::kPass);
  EXPECT_EQ(judge_run(attack, seen, outside_saying("not taken")), CaseState::kControlFailed);
  EXPECT_EQ(judge_run(attack, seen, {}), CaseState::kControlFailed);
  collect::CollectedFile taken = good;
  taken.path = taken.raw_path = "thing";
  seen.outcome->files.push_back(taken);
  EXPECT_EQ(judge_run(attack, seen, control), CaseState::kFail);
}

TEST(SelftestRunCases, AMissingLayerIsToldByTheOutcome) {
  collect::Outcome outcome;
  outcome.layers = {{"cgroup", policy::LayerState::kMissing, "no cgroup"},
                    {"seccomp", policy::LayerState::kHeld, ""},
                    {"landlock", policy::LayerState::kDegraded, ""}};
  EXPECT_EQ(missing_layers(outcome), std::vector<std::string>{"cgroup"});
}

// Outside: none needs the sandbox, and none leaves anything.
TEST(SelftestRunControls, EveryActOutsideShowsItselfAtWork) {
  const Result<ControlGround> ground = ControlGround::prepare();
  ASSERT_TRUE(ground.has_value()) << to_string(ground.error());
  for (const RunCase& attack : run_cases()) {
    if (attack.outside.empty()) continue;
    AttackCase outside{};
    outside.act = attack.outside;
    outside.control_argument = attack.control_argument;
    outside.control = Control::kThrowAway;
    const std::optional<Observation> seen = run_control(outside, *ground);
    ASSERT_TRUE(seen && seen->answered) << attack.name << ": " << (seen ? seen->trouble : "");
    EXPECT_EQ(seen->sys_errno, 0) << attack.name;
    EXPECT_EQ(seen->value, attack.outside_value) << attack.name;
  }
}

}  // namespace
}  // namespace sbx::cli
