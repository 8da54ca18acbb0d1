// Fields of a request's body: what to answer when one is wrong, and limits. Stage: daemon. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/problem.h"
#include "runtime/daemon/ceilings.h"
#include "runtime/daemon/strict_json.h"
#include "runtime/policy/limits.h"

namespace sbx::daemon {

// What a client wrote, not too long for our answer.
[[nodiscard]] std::string shown_text(std::string_view text);

[[nodiscard]] http::Problem wrong_type(const std::string& field, JsonKind wanted, JsonKind given);
[[nodiscard]] http::Problem invalid_value(const std::string& field, std::string detail,
                                          std::vector<std::string> allowed = {});
[[nodiscard]] http::Problem missing_field(const std::string& field, std::string detail);
[[nodiscard]] http::Problem unknown_field(const std::string& field,
                                          std::vector<std::string> allowed);

// Sets the limit that a member of `limits` names, up to its ceiling. unknown_field, wrong_type,
// invalid_value, above_ceiling.
[[nodiscard]] std::optional<http::Problem> set_limit(policy::Limits& limits, const JsonValue& value,
                                                     const Ceilings& ceilings);

}  // namespace sbx::daemon
