// Why a request ended, as one sentence for a person. Pure.
#pragma once

#include <string>
#include <string_view>

#include "agentd/record/record.h"

namespace agentd::loop {

// `detail`: what the provider or the sandbox said, where one of them ended it.
[[nodiscard]] std::string ending_text(const record::Record& record, std::string_view detail);
// `detail` as it is said with what mends it; an empty fix adds nothing.
[[nodiscard]] std::string with_fix(std::string detail, std::string_view fix);
// Puts ending_text() on record, and the fix where the text ends with it.
void set_reason(record::Record& record, std::string_view detail, std::string_view fix);

}  // namespace agentd::loop
