// Limits as members of a request's body. Stage: daemon. Pure.
#pragma once

#include <optional>

#include "http/json_fields.h"
#include "http/problem.h"
#include "http/strict_json.h"
#include "runtime/daemon/ceilings.h"
#include "runtime/policy/limits.h"

namespace sbx::daemon {

// Of the HTTP library's JSON, used throughout this stage.
using http::invalid_value;
using http::json_kind_name;
using http::JsonKind;
using http::JsonValue;
using http::missing_field;
using http::OrProblem;
using http::parse_strict_json;
using http::shown_text;
using http::unknown_field;
using http::wrong_type;

// Sets the limit that a member of `limits` names, up to its ceiling. unknown_field, wrong_type,
// invalid_value, above_ceiling.
[[nodiscard]] std::optional<http::Problem> set_limit(policy::Limits& limits, const JsonValue& value,
                                                     const Ceilings& ceilings);

}  // namespace sbx::daemon
