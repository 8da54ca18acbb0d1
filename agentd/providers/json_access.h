// Looking into JSON of strangers without trusting its types. Internal to providers/.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace agentd::providers {

// The member, or null: `json` is no object, has no such member, or it is null.
[[nodiscard]] const nlohmann::ordered_json* member(const nlohmann::ordered_json& json,
                                                   const char* name);
// "" when it is no string.
[[nodiscard]] std::string text_of(const nlohmann::ordered_json* json);
// 0 when it is no integer; within ±10¹², so that sums cannot overflow.
[[nodiscard]] std::int64_t number_of(const nlohmann::ordered_json* json);
// Of tokens: -1 where a number stands that is no integer, or no number.
[[nodiscard]] std::int64_t count_of(const nlohmann::ordered_json* json);
// Without throwing on text that is not UTF-8.
[[nodiscard]] std::string dump(const nlohmann::ordered_json& json);

}  // namespace agentd::providers
