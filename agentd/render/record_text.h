// A record for a terminal: result, attempts, footer. Pure; from the JSON that agentd sends.
//
// SECURITY: everything in it was made by a model or a program; whatever is drawn is escaped.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace agentd::render {

// Of a request's state: it has not ended.
[[nodiscard]] bool is_under_way(std::string_view state);

// The result without its picture or file: table, text, raw output under its banner, note. Ends with
// a line end; empty when there is none.
[[nodiscard]] std::string result_text(const nlohmann::ordered_json& record);

// A line on what the program made and the sandbox left out of the files of the result, and why.
// Empty when it was nothing, or there is no result.
[[nodiscard]] std::string left_out(const nlohmann::ordered_json& record);

// One line for each attempt: class, time, tokens, cost.
[[nodiscard]] std::string attempt_lines(const nlohmann::ordered_json& record);

// Attempts, wall time, cost, provider, id; and why it ended where that was no success.
[[nodiscard]] std::string footer(const nlohmann::ordered_json& record);

// "provider: replay (recordings; no model is asked)". `info` is agentd's /v1/info.
[[nodiscard]] std::string provider_line(const nlohmann::ordered_json& info);

// One line for each request of a page of history.
[[nodiscard]] std::string history_lines(const nlohmann::ordered_json& page);

}  // namespace agentd::render
