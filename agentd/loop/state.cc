#include "agentd/loop/state.h"

namespace agentd::loop {

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::kGenerate:
      return "generate";
    case Phase::kExecute:
      return "execute";
    case Phase::kEvaluate:
      return "evaluate";
    case Phase::kRepair:
      return "repair";
    case Phase::kGiveUp:
      return "give_up";
    case Phase::kDone:
      return "done";
  }
  return {};
}

std::string_view to_string(FailureClass failure) {
  switch (failure) {
    case FailureClass::kSyntax:
      return "syntax";
    case FailureClass::kRuntime:
      return "runtime";
    case FailureClass::kEnvelope:
      return "envelope";
    case FailureClass::kResource:
      return "resource";
    case FailureClass::kProvider:
      return "provider";
    case FailureClass::kTimeout:
      return "timeout";
    case FailureClass::kSecurity:
      return "security";
    case FailureClass::kSandbox:
      return "sandbox";
  }
  return {};
}

std::string_view to_string(Ceiling ceiling) {
  switch (ceiling) {
    case Ceiling::kAttempts:
      return "attempts";
    case Ceiling::kTokens:
      return "tokens";
    case Ceiling::kCost:
      return "cost";
    case Ceiling::kSandboxSeconds:
      return "sandbox_seconds";
    case Ceiling::kWallSeconds:
      return "wall_seconds";
  }
  return {};
}

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::kPassed:
      return "passed";
    case Reason::kCeiling:
      return "ceiling";
    case Reason::kTimeout:
      return "timeout";
    case Reason::kSecurity:
      return "security";
    case Reason::kResource:
      return "resource";
    case Reason::kProvider:
      return "provider";
    case Reason::kCancelled:
      return "cancelled";
    case Reason::kSandbox:
      return "sandbox";
    case Reason::kLedger:
      return "ledger";
    case Reason::kInternal:
      return "internal";
  }
  return {};
}

bool is_ours(Reason reason) {
  return reason == Reason::kSandbox || reason == Reason::kLedger || reason == Reason::kInternal;
}

}  // namespace agentd::loop
