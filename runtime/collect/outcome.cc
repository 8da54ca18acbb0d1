#include "runtime/collect/outcome.h"

namespace sbx::collect {

std::string_view status_name(Status status) {
  switch (status) {
    case Status::kSandboxError:
      return "sandbox_error";
    case Status::kCancelled:
      return "cancelled";
    case Status::kSecurity:
      return "security";
    case Status::kOom:
      return "oom";
    case Status::kTimeout:
      return "timeout";
    case Status::kCpuTime:
      return "cpu_time";
    case Status::kOutput:
      return "output";
    case Status::kSignal:
      return "signal";
    case Status::kExit:
      return "exit";
    case Status::kOk:
      return "ok";
  }
  return "sandbox_error";
}

int process_exit_code(const Outcome& outcome) {
  switch (outcome.status) {
    case Status::kSandboxError:
      return 125;
    case Status::kCancelled:
      return 130;
    case Status::kSecurity:
      return 159;
    case Status::kOom:
      return 137;
    case Status::kTimeout:
    case Status::kCpuTime:
      return 124;
    case Status::kOutput:
      return 123;
    case Status::kSignal:
    case Status::kExit:
      return outcome.exit_code;
    case Status::kOk:
      return 0;
  }
  return 125;
}

}  // namespace sbx::collect
