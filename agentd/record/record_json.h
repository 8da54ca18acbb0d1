// Records as JSON: the one form that all surfaces are made of (docs/api.md). Pure.
#pragma once

#include "agentd/record/record.h"
#include "agentd/redact/redactor.h"

namespace agentd::record {

[[nodiscard]] redact::Clean record_json(const Record& record, const redact::Redactor& redactor);
// Its two parts. For history: without attempts and result;
[[nodiscard]] redact::Clean summary_json(const Record& record, const redact::Redactor& redactor);
// and what follows then.
[[nodiscard]] redact::Clean detail_json(const Record& record, const redact::Redactor& redactor);
// The data of an event: {state, attempt, text}.
[[nodiscard]] redact::Clean event_json(const Record& record, const redact::Redactor& redactor);

}  // namespace agentd::record
