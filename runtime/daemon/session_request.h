// The body of POST /v1/sessions, judged. Stage: daemon. Pure.
//
//   {"limits": {"work": "1G", "work_inodes": 10000}, "idle_seconds": 600, "age_seconds": 86400}
//
// Everything may be left out. The times are at most the configuration's, which are the defaults.
#pragma once

#include <chrono>
#include <string_view>

#include "runtime/daemon/run_request.h"
#include "runtime/daemon/sessions.h"

namespace sbx::daemon {

struct SessionTimes {
  std::chrono::seconds idle{}, age{};  // defaults and greatest values
};

// Codes as parse_run_request().
[[nodiscard]] OrProblem<SessionWish> parse_session_request(std::string_view body,
                                                           const RequestRules& rules,
                                                           const SessionTimes& times);

}  // namespace sbx::daemon
