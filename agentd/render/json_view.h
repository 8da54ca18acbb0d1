// Looking into agentd's answers without trusting their types: another version's may differ.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace agentd::render {

// The member, or a null: `json` is no object, or has no such member.
[[nodiscard]] const nlohmann::ordered_json& member(const nlohmann::ordered_json& json,
                                                   const char* name);
// "" when it is no string.
[[nodiscard]] std::string text_at(const nlohmann::ordered_json& json, const char* name);
// 0 when it is no number.
[[nodiscard]] double number_at(const nlohmann::ordered_json& json, const char* name);
// False when it is no true.
[[nodiscard]] bool flag_at(const nlohmann::ordered_json& json, const char* name);

}  // namespace agentd::render
