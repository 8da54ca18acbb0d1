// A run as sbxd's JSON (contract.md, "Result"). Pure.
#pragma once

#include <string>
#include <string_view>

#include "agentd/sandbox/sandbox.h"
#include "runtime/base/result.h"

namespace agentd::sandbox {

// The body of POST /v1/run.
[[nodiscard]] std::string run_body(const RunRequest& request);
// The answer's body. A result of status "sandbox_error" or "cancelled" is a SandboxFailure.
[[nodiscard]] RunOutcome parse_run(std::string_view body);
// What a problem document says, with its fix.
[[nodiscard]] SandboxFailure parse_problem(int status, std::string_view body);

}  // namespace agentd::sandbox
