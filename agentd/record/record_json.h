// Records as JSON: the one form that all surfaces are made of (docs/api.md). Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "agentd/record/record.h"

namespace agentd::record {

[[nodiscard]] nlohmann::ordered_json record_json(const Record& record);
// Its two parts. For history: without attempts and result;
[[nodiscard]] nlohmann::ordered_json summary_json(const Record& record);
// and what follows then.
[[nodiscard]] nlohmann::ordered_json detail_json(const Record& record);
// The data of an event: {state, attempt, text}.
[[nodiscard]] nlohmann::ordered_json event_json(const Record& record);

}  // namespace agentd::record
