// The transition function: every state with every event, and random walks.
#include "agentd/loop/machine.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>

namespace agentd::loop {
namespace {

using Kind = Event::Kind;

std::string describe(const State& state) {
  std::ostringstream text;
  text << to_string(state.phase) << " attempt " << state.attempt
       << (state.resource_repaired ? " resource_repaired" : "")
       << (state.sandbox_retried ? " sandbox_retried" : "") << " "
       << to_string(state.ending.reason);
  return text.str();
}

// Which phase an event leads to while neither cap nor budget stands in the way. Rows: phases;
// columns: kEventKinds, with kFailed as kRuntime.
constexpr Phase kG = Phase::kGiveUp;
constexpr Phase kD = Phase::kDone;
const std::map<Phase, std::vector<Phase>> kTable = {
    // accepted, rejected, provider, run ended, sandbox, passed, failed, ceiling, ledger, cancelled,
    // reported
    {Phase::kGenerate, {Phase::kExecute, Phase::kRepair, kG, kG, kG, kG, kG, kG, kG, kG, kG}},
    {Phase::kExecute, {kG, kG, kG, Phase::kEvaluate, Phase::kExecute, kG, kG, kG, kG, kG, kG}},
    {Phase::kEvaluate, {kG, kG, kG, kG, kG, kD, Phase::kRepair, kG, kG, kG, kG}},
    {Phase::kRepair, {Phase::kExecute, Phase::kRepair, kG, kG, kG, kG, kG, kG, kG, kG, kG}},
    {Phase::kGiveUp, {kG, kG, kG, kG, kG, kG, kG, kG, kG, kG, kD}},
    {Phase::kDone, {kD, kD, kD, kD, kD, kD, kD, kD, kD, kD, kD}},
};

std::vector<State> states_in(Phase phase, int max_attempts) {
  std::vector<State> states;
  for (int attempt = 0; attempt <= max_attempts; ++attempt) {
    for (const bool repaired : {false, true}) {
      for (const bool retried : {false, true}) {
        states.push_back({phase, attempt, repaired, retried, {}});
      }
    }
  }
  return states;
}

TEST(Machine, EachPhaseAnswersEachEventAsTheTableSays) {
  for (const Phase phase : kPhases) {
    ASSERT_EQ(kTable.at(phase).size(), kEventKinds.size());
    for (std::size_t i = 0; i < kEventKinds.size(); ++i) {
      const State from{.phase = phase, .attempt = 1};
      const State to = next(from, {.kind = kEventKinds[i]}, {.max_attempts = 3});
      EXPECT_EQ(to.phase, kTable.at(phase)[i])
          << to_string(phase) << " with event " << i << " gave " << describe(to);
    }
  }
}

TEST(Machine, OnlyPairsThatCanOccurAvoidTheInternalEnding) {
  const std::map<Phase, std::vector<Kind>> expected = {
      {Phase::kGenerate,
       {Kind::kReplyAccepted, Kind::kReplyRejected, Kind::kProviderFailed, Kind::kSandboxFailed}},
      {Phase::kRepair,
       {Kind::kReplyAccepted, Kind::kReplyRejected, Kind::kProviderFailed, Kind::kSandboxFailed}},
      {Phase::kExecute, {Kind::kRunEnded, Kind::kSandboxFailed}},
      {Phase::kEvaluate, {Kind::kPassed, Kind::kFailed}},
  };
  const std::vector<Kind> anywhere = {Kind::kCeilingReached, Kind::kLedgerFailed, Kind::kCancelled};
  for (const auto& [phase, kinds] : expected) {
    for (const Kind kind : kEventKinds) {
      const State to = next({.phase = phase, .attempt = 1}, {.kind = kind}, {});
      const bool possible = std::count(kinds.begin(), kinds.end(), kind) +
                                std::count(anywhere.begin(), anywhere.end(), kind) >
                            0;
      const bool internal = to.phase == kG && to.ending.reason == Reason::kInternal;
      EXPECT_EQ(internal, !possible) << to_string(phase) << " " << static_cast<int>(kind);
    }
  }
}

TEST(Machine, RepairableFailuresAreRepairedWhileAttemptsLast) {
  for (const FailureClass failure :
       {FailureClass::kSyntax, FailureClass::kRuntime, FailureClass::kEnvelope}) {
    const Event event{.kind = Kind::kFailed, .failure = failure};
    EXPECT_EQ(next({.phase = Phase::kEvaluate, .attempt = 2}, event, {.max_attempts = 3}).phase,
              Phase::kRepair);
    const State last = next({.phase = Phase::kEvaluate, .attempt = 3}, event, {.max_attempts = 3});
    EXPECT_EQ(last.phase, Phase::kGiveUp);
    EXPECT_EQ(last.ending, (Ending{Reason::kCeiling, failure, Ceiling::kAttempts}));
  }
}

TEST(Machine, TimeoutAndSecurityAreTerminalWhateverIsLeft) {
  const State timeout = next({.phase = Phase::kEvaluate, .attempt = 1},
                             {.kind = Kind::kFailed, .failure = FailureClass::kTimeout}, {});
  EXPECT_EQ(timeout.ending.reason, Reason::kTimeout);
  const State security = next({.phase = Phase::kEvaluate, .attempt = 1},
                              {.kind = Kind::kFailed, .failure = FailureClass::kSecurity}, {});
  EXPECT_EQ(security.ending.reason, Reason::kSecurity);
}

TEST(Machine, AResourceFailureIsRepairedOnce) {
  const Event event{.kind = Kind::kFailed, .failure = FailureClass::kResource};
  const Budget budget{.max_attempts = 9};
  const State first = next({.phase = Phase::kEvaluate, .attempt = 1}, event, budget);
  EXPECT_EQ(first.phase, Phase::kRepair);
  EXPECT_TRUE(first.resource_repaired);
  State again = first;
  again.phase = Phase::kEvaluate;
  const State second = next(again, event, budget);
  EXPECT_EQ(second.phase, Phase::kGiveUp);
  EXPECT_EQ(second.ending.reason, Reason::kResource);
}

TEST(Machine, ASpentBudgetLeavesNoWayToRepair) {
  for (const Ceiling ceiling : kCeilings) {
    const Budget budget{.max_attempts = 3, .spent = ceiling};
    for (const Event& event : {Event{.kind = Kind::kFailed, .failure = FailureClass::kSyntax},
                               Event{.kind = Kind::kFailed, .failure = FailureClass::kResource}}) {
      const State to = next({.phase = Phase::kEvaluate, .attempt = 1}, event, budget);
      EXPECT_EQ(to.phase, Phase::kGiveUp);
      EXPECT_EQ(to.ending.ceiling, ceiling);
    }
    const State rejected =
        next({.phase = Phase::kGenerate}, {.kind = Kind::kReplyRejected}, budget);
    EXPECT_EQ(rejected.phase, Phase::kGiveUp);
    EXPECT_EQ(rejected.attempt, 1) << "the reply counts";
  }
}

TEST(Machine, TheSandboxIsTriedAgainOnceWithoutCountingAnAttempt) {
  const Event failed{.kind = Kind::kSandboxFailed};
  const State once = next({.phase = Phase::kExecute, .attempt = 2}, failed, {});
  EXPECT_EQ(once, (State{.phase = Phase::kExecute, .attempt = 2, .sandbox_retried = true}));
  const State twice = next(once, failed, {});
  EXPECT_EQ(twice.phase, Phase::kGiveUp);
  EXPECT_TRUE(is_ours(twice.ending.reason));
}

TEST(Machine, AnInterruptionEndsEveryStateThatWorksWithItsOwnReason) {
  for (const Phase phase : {Phase::kGenerate, Phase::kExecute, Phase::kEvaluate, Phase::kRepair}) {
    for (const State& state : states_in(phase, 2)) {
      EXPECT_EQ(next(state, {.kind = Kind::kCancelled}, {}).ending.reason, Reason::kCancelled);
      EXPECT_EQ(next(state, {.kind = Kind::kLedgerFailed}, {}).ending.reason, Reason::kLedger);
      const State cut =
          next(state, {.kind = Kind::kCeilingReached, .ceiling = Ceiling::kWallSeconds}, {});
      EXPECT_EQ(cut.ending.ceiling, Ceiling::kWallSeconds);
    }
  }
}

TEST(Machine, TheEndAbsorbsEverythingUnchanged) {
  const State done{.phase = Phase::kDone, .attempt = 2, .ending = {.reason = Reason::kPassed}};
  const State leaving{
      .phase = Phase::kGiveUp, .attempt = 2, .ending = {.reason = Reason::kTimeout}};
  for (const Kind kind : kEventKinds) {
    EXPECT_EQ(next(done, {.kind = kind}, {}), done);
    EXPECT_EQ(next(leaving, {.kind = kind}, {}).ending, leaving.ending);
  }
}

// No event sequence, however wrong, makes more calls or runs than allowed, or goes on for ever.
TEST(Machine, EveryWalkEndsWithinItsBounds) {
  std::mt19937 random(20240501);
  for (int walk = 0; walk < 200'000; ++walk) {
    const int max_attempts = 1 + static_cast<int>(random() % 5);
    const int spent_after = static_cast<int>(random() % 8);
    const bool lawful = random() % 2 == 0;  // only events that can occur, so that walks go far
    State state;
    int calls = 1;
    int runs = 0;
    int steps = 0;
    while (state.phase != Phase::kGiveUp && state.phase != Phase::kDone) {
      Event event{.kind = kEventKinds[random() % kEventKinds.size()],
                  .failure = kFailureClasses[random() % kFailureClasses.size()],
                  .ceiling = kCeilings[random() % kCeilings.size()]};
      const Budget budget{
          max_attempts, steps >= spent_after * 3 ? std::optional(Ceiling::kTokens) : std::nullopt};
      const State to = next(state, event, budget);
      if (lawful && to.ending.reason == Reason::kInternal && to.phase == Phase::kGiveUp) continue;
      ASSERT_LE(to.attempt - state.attempt, 1);
      ASSERT_GE(to.attempt, state.attempt);
      calls += to.phase == Phase::kRepair ? 1 : 0;
      runs += to.phase == Phase::kExecute ? 1 : 0;
      state = to;
      ++steps;
    }
    ASSERT_LE(calls, max_attempts);
    ASSERT_LE(runs, max_attempts + 1);
    ASSERT_LE(steps, 3 * max_attempts + 2);
    ASSERT_LE(state.attempt, max_attempts);
    ASSERT_EQ(next(state, {.kind = Kind::kReported}, {}).phase, Phase::kDone);
  }
}

TEST(States, HaveDistinctNamesForRecords) {
  std::map<std::string_view, int> names;
  for (const Phase phase : kPhases) ++names[to_string(phase)];
  EXPECT_EQ(names.size(), kPhases.size());
  names.clear();
  for (const FailureClass failure : kFailureClasses) ++names[to_string(failure)];
  EXPECT_EQ(names.size(), kFailureClasses.size());
  names.clear();
  for (const Ceiling ceiling : kCeilings) ++names[to_string(ceiling)];
  EXPECT_EQ(names.size(), kCeilings.size());
  EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace agentd::loop
