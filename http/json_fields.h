// Fields of a request's body: what to answer when one is wrong. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/problem.h"
#include "http/strict_json.h"

namespace sbx::http {

// What a client wrote, not too long for our answer.
[[nodiscard]] std::string shown_text(std::string_view text);

[[nodiscard]] Problem wrong_type(const std::string& field, JsonKind wanted, JsonKind given);
[[nodiscard]] Problem invalid_value(const std::string& field, std::string detail,
                                    std::vector<std::string> allowed = {});
[[nodiscard]] Problem missing_field(const std::string& field, std::string detail);
[[nodiscard]] Problem unknown_field(const std::string& field, std::vector<std::string> allowed);

}  // namespace sbx::http
