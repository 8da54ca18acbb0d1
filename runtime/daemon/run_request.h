// RunRequest: the body of POST /v1/run and of a session's run, taken apart and judged. Stage:
// daemon. Pure.
//
// Strict: unknown and duplicate fields, wrong types and values out of range are problems that name
// the field and what is allowed. SECURITY: names of languages and profiles are looked up in what
// was loaded at start; nothing a client says is ever opened.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/uri.h"
#include "runtime/collect/collection.h"
#include "runtime/daemon/ceilings.h"
#include "runtime/daemon/json_fields.h"
#include "runtime/plan/request.h"
#include "runtime/policy/policy.h"

namespace sbx::daemon {

struct RunRequest {
  plan::Request request;
  policy::Policy policy;  // the profile, lowered to the ceilings, with the request's own limits
  collect::CollectMode collect = collect::CollectMode::kContent;
  bool wait = false;  // of a session: queue behind its running run
  // For the audit file, SHA-256: of the code, or of argv's words with a NUL behind each; of the
  // inputs' names and hashes likewise, empty without inputs.
  std::string program_sha256;
  std::string inputs_sha256;
};

// What a request is held against; built once at start.
struct RequestRules {
  std::vector<policy::Policy> profiles;  // the first is used where none is named
  Ceilings ceilings;                     // effective ones
};

enum class RunPlace { kAlone, kSession };

// Codes, with 400: invalid_json, duplicate_field, unknown_field, missing_field, wrong_type; with
// 413: body_too_large; with 422: invalid_value, conflicting_fields, unknown_language,
// unknown_profile, above_ceiling.
[[nodiscard]] OrProblem<RunRequest> parse_run_request(std::string_view body,
                                                      const RequestRules& rules, RunPlace place);

// What Sandbox refused as the caller's mistake: 422 invalid_value.
[[nodiscard]] http::Problem invalid_request(const Error& error);
// What the core advises, whose words are the command line's: its options for limits as the fields
// that they are here. With another option in it, nothing: no client can follow it.
[[nodiscard]] std::string fix_for_clients(std::string_view fix);

// The value of ?stream; a problem: invalid_value.
[[nodiscard]] OrProblem<bool> wants_stream(const http::Query& query);

}  // namespace sbx::daemon
