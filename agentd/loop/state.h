// The states of a request, as values. Service: agentd; part of the pure core of the loop.
//
//            ┌──────────┐      ┌─────────┐      ┌──────────┐  passed
//  request ─▶│ generate │ ───▶ │ execute │ ───▶ │ evaluate │ ─────────▶ done
//            └──────────┘      └─────────┘      └──────────┘
//                 │                 ▲   repairable │      │ terminal, cap or budget
//                 │ no program      │              ▼      ▼
//                 │                 │         ┌────────┐ ┌─────────┐
//                 └─────────────────┼───────▶ │ repair │ │ give_up │ ──▶ done
//                                   └──────── └────────┘ └─────────┘
//
// machine.h decides which edge is taken; driver.h does what a state stands for. Names here are
// public: they appear in records and events.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace agentd::loop {

enum class Phase : std::uint8_t {
  kGenerate,  // a model writes the first program
  kExecute,   // the program runs in the sandbox
  kEvaluate,  // the runtime's facts are judged
  kRepair,    // a model mends the program
  kGiveUp,    // the report is made
  kDone,
};
inline constexpr std::array kPhases = {Phase::kGenerate, Phase::kExecute, Phase::kEvaluate,
                                       Phase::kRepair,   Phase::kGiveUp,  Phase::kDone};
[[nodiscard]] std::string_view to_string(Phase phase);  // "generate"

// What was wrong with an attempt.
enum class FailureClass : std::uint8_t {
  kSyntax,    // repairable
  kRuntime,   // repairable
  kEnvelope,  // repairable
  kResource,  // repairable, once
  kProvider,  // repairable when the reply held no program, else terminal
  kTimeout,   // terminal: the boundary held
  kSecurity,  // terminal: the boundary held
  kSandbox,   // ours
};
inline constexpr std::array kFailureClasses = {FailureClass::kSyntax,   FailureClass::kRuntime,
                                               FailureClass::kEnvelope, FailureClass::kResource,
                                               FailureClass::kProvider, FailureClass::kTimeout,
                                               FailureClass::kSecurity, FailureClass::kSandbox};
[[nodiscard]] std::string_view to_string(FailureClass failure);  // "syntax"

// The ceilings of a request's budget.
enum class Ceiling : std::uint8_t { kAttempts, kTokens, kCost, kSandboxSeconds, kWallSeconds };
inline constexpr std::array kCeilings = {Ceiling::kAttempts, Ceiling::kTokens, Ceiling::kCost,
                                         Ceiling::kSandboxSeconds, Ceiling::kWallSeconds};
[[nodiscard]] std::string_view to_string(Ceiling ceiling);  // "sandbox_seconds"

// Why a request ended.
enum class Reason : std::uint8_t {
  kPassed,
  kCeiling,    // Ending::ceiling says which; for kAttempts, Ending::failure is the last one
  kTimeout,    // the program ran into its time limit
  kSecurity,   // the program made a hostile call
  kResource,   // it ran out of the same kind of resource again after its one repair
  kProvider,   // the model could not be reached, or refused
  kCancelled,  // the client asked
  kSandbox,    // ours: the sandbox failed
  kLedger,     // ours: a charge could not be put on record
  kInternal,   // ours: an event that cannot be
};
[[nodiscard]] std::string_view to_string(Reason reason);  // "passed"
// Failing machinery, as against a failing program, model or budget.
[[nodiscard]] bool is_ours(Reason reason);

struct Ending {
  Reason reason = Reason::kInternal;
  std::optional<FailureClass> failure{};
  std::optional<Ceiling> ceiling{};
  bool operator==(const Ending&) const = default;
};

struct State {
  Phase phase = Phase::kGenerate;
  int attempt = 0;  // model replies so far, accepted or rejected
  bool resource_repaired = false;
  bool sandbox_retried = false;
  Ending ending{};  // in kGiveUp and kDone
  bool operator==(const State&) const = default;
};

}  // namespace agentd::loop
