// What a failed step of the child means to the caller. Stage: supervise.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/result.h"
#include "runtime/plan/flat_plan.h"
#include "runtime/plan/plan.h"

namespace sbx::supervise {

// An Error with the step's name, and a fix where one is known; where it is the image's fault, with
// the image's path.
[[nodiscard]] Error step_error(const plan::Plan& plan, const plan::Record& record);

// For an exec that failed because of what the caller asked for (not there, not executable, no
// program, too long): the wait status a shell would give, 127 or 126. nullopt: it is our failure.
[[nodiscard]] std::optional<int> exec_failure_status(const plan::Record& record);
[[nodiscard]] std::string exec_failure_text(const std::string& program, const plan::Record& record);

// The same in a run of a language, whose interpreter nobody named: kHost, with the fix, since it is
// the image that is broken. nullopt for what the caller's arguments have a part in (E2BIG).
[[nodiscard]] std::optional<Error> interpreter_error(const plan::Plan& plan,
                                                     const plan::Record& record);

}  // namespace sbx::supervise
