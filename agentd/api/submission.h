// The bodies of POST /v1/requests and /v1/agent, taken apart and judged. Pure; slow for large
// files.
//
// Strict: unknown and duplicate fields, wrong types and values out of range are problems that name
// the field and what is allowed.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "agentd/record/record.h"
#include "agentd/service/request_service.h"
#include "http/strict_json.h"

namespace agentd::api {

inline constexpr std::size_t kMaxTextBytes = 16U << 10;
inline constexpr std::size_t kMaxFiles = 32;
inline constexpr std::size_t kMaxFileBytes = 10U << 20;  // of all together
inline constexpr std::size_t kMaxFileName = 255;
inline constexpr std::size_t kMaxLabel = 80;
inline constexpr int kMaxIterations = 10;

// Codes, with 400: invalid_json, duplicate_field, unknown_field, missing_field, wrong_type; with
// 413: body_too_large, text_too_long, files_too_large; with 422: invalid_value, text_empty,
// unknown_language, above_ceiling.
[[nodiscard]] sbx::http::OrProblem<service::Submitted> parse_submission(
    std::string_view body, record::Mode mode, const record::Budget& ceilings);

}  // namespace agentd::api
