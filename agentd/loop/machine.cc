#include "agentd/loop/machine.h"

namespace agentd::loop {
namespace {

using Kind = Event::Kind;

State give_up(State state, Ending ending) {
  state.phase = Phase::kGiveUp;
  state.ending = ending;
  return state;
}

State impossible(State state) {
  return give_up(state, {.reason = Reason::kInternal});
}

// The only way into kRepair.
State repair_or_give_up(State state, FailureClass failure, const Budget& budget) {
  if (state.attempt >= budget.max_attempts) {
    return give_up(state, {Reason::kCeiling, failure, Ceiling::kAttempts});
  }
  if (budget.spent) return give_up(state, {Reason::kCeiling, failure, budget.spent});
  state.phase = Phase::kRepair;
  return state;
}

State after_reply(State state, const Event& event, const Budget& budget) {
  // A reply beyond the cap cannot be: kRepair is not entered at it.
  if (state.attempt >= budget.max_attempts) return impossible(state);
  switch (event.kind) {
    case Kind::kReplyAccepted:
      ++state.attempt;
      state.phase = Phase::kExecute;
      return state;
    case Kind::kReplyRejected:
      ++state.attempt;
      return repair_or_give_up(state, FailureClass::kProvider, budget);
    case Kind::kProviderFailed:
      return give_up(state, {Reason::kProvider, FailureClass::kProvider, {}});
    case Kind::kSandboxFailed:  // what it offers could not be learned
      return give_up(state, {Reason::kSandbox, FailureClass::kSandbox, {}});
    default:
      return impossible(state);
  }
}

State after_run(State state, const Event& event) {
  switch (event.kind) {
    case Kind::kRunEnded:
      state.phase = Phase::kEvaluate;
      return state;
    case Kind::kSandboxFailed:
      if (state.sandbox_retried) {
        return give_up(state, {Reason::kSandbox, FailureClass::kSandbox, {}});
      }
      state.sandbox_retried = true;  // the same attempt again
      return state;
    default:
      return impossible(state);
  }
}

State after_failure(State state, FailureClass failure, const Budget& budget) {
  switch (failure) {
    case FailureClass::kSyntax:
    case FailureClass::kRuntime:
    case FailureClass::kEnvelope:
      return repair_or_give_up(state, failure, budget);
    case FailureClass::kResource:
      if (state.resource_repaired) return give_up(state, {Reason::kResource, failure, {}});
      state.resource_repaired = true;
      return repair_or_give_up(state, failure, budget);
    case FailureClass::kTimeout:
      return give_up(state, {Reason::kTimeout, failure, {}});
    case FailureClass::kSecurity:
      return give_up(state, {Reason::kSecurity, failure, {}});
    case FailureClass::kProvider:
    case FailureClass::kSandbox:
      break;  // neither is a judgement of a run
  }
  return impossible(state);
}

State after_judgement(State state, const Event& event, const Budget& budget) {
  if (event.kind == Kind::kFailed) return after_failure(state, event.failure, budget);
  if (event.kind != Kind::kPassed) return impossible(state);
  state.phase = Phase::kDone;
  state.ending = {.reason = Reason::kPassed};
  return state;
}

}  // namespace

State next(const State& state, const Event& event, const Budget& budget) {
  if (state.phase == Phase::kDone) return state;
  if (state.phase == Phase::kGiveUp) {
    State ended = state;
    if (event.kind == Kind::kReported) ended.phase = Phase::kDone;
    return ended;
  }
  // What may happen in every state that works.
  if (event.kind == Kind::kCancelled) return give_up(state, {.reason = Reason::kCancelled});
  if (event.kind == Kind::kLedgerFailed) return give_up(state, {.reason = Reason::kLedger});
  if (event.kind == Kind::kCeilingReached) {
    return give_up(state, {.reason = Reason::kCeiling, .ceiling = event.ceiling});
  }
  switch (state.phase) {
    case Phase::kGenerate:
    case Phase::kRepair:
      return after_reply(state, event, budget);
    case Phase::kExecute:
      return after_run(state, event);
    case Phase::kEvaluate:
      return after_judgement(state, event, budget);
    default:
      return impossible(state);
  }
}

}  // namespace agentd::loop
