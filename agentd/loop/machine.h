// The transition function of the repair loop: (state, event, budget) → state. Pure.
//
// Termination is structural. The attempt counter rises with each reply, no edge leads to kRepair
// once it equals the cap or the budget is spent, and the one edge from kExecute to itself is taken
// once in a request. So model calls ≤ max_attempts and runs ≤ max_attempts + 1.
//
// Total: a pair that cannot occur fails closed, as kGiveUp with Reason::kInternal. kDone absorbs
// every event; kGiveUp every one but kReported.
#pragma once

#include <cstdint>
#include <optional>

#include "agentd/loop/state.h"

namespace agentd::loop {

struct Event {
  enum class Kind : std::uint8_t {
    kReplyAccepted,   // a reply with a program
    kReplyRejected,   // a reply without: none, several, cut
    kProviderFailed,  // unreachable after retries, or refused
    kRunEnded,        // whatever the program did
    kSandboxFailed,   // the runtime could not run it
    kPassed,          // ok, with a valid envelope
    kFailed,          // `failure` says how
    kCeilingReached,  // a reservation was refused, or time is up: `ceiling`
    kLedgerFailed,    // a reservation could not be written
    kCancelled,
    kReported,  // the report of a request that gave up is made
  };
  Kind kind = Kind::kReported;
  FailureClass failure = FailureClass::kRuntime;  // kFailed
  Ceiling ceiling = Ceiling::kAttempts;           // kCeilingReached
};
inline constexpr std::array kEventKinds = {
    Event::Kind::kReplyAccepted, Event::Kind::kReplyRejected,  Event::Kind::kProviderFailed,
    Event::Kind::kRunEnded,      Event::Kind::kSandboxFailed,  Event::Kind::kPassed,
    Event::Kind::kFailed,        Event::Kind::kCeilingReached, Event::Kind::kLedgerFailed,
    Event::Kind::kCancelled,     Event::Kind::kReported};

struct Budget {
  int max_attempts = 3;
  std::optional<Ceiling> spent{};  // the first ceiling of which nothing is left
};

[[nodiscard]] State next(const State& state, const Event& event, const Budget& budget);

}  // namespace agentd::loop
