// Some members of an object in JSON, as they stand in its text. Pure.
//
// For an answer of which little is looked at: what is passed over costs a look at each byte, and
// whether it is good JSON is not found out. Who wrote it is trusted to write JSON; what a hostile
// program wrote stands in its strings.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace agentd::sandbox {

// An object of the members with these names, which are without escapes. What is no object that ends
// where the text does comes back as it is, for a parser to say what is wrong with it.
[[nodiscard]] std::string json_members(std::string_view json,
                                       std::span<const std::string_view> names);

}  // namespace agentd::sandbox
