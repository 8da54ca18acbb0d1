// Why a request ended, as one sentence for a person. Pure.
#pragma once

#include <string>
#include <string_view>

#include "agentd/record/record.h"

namespace agentd::loop {

// `detail`: what the provider or the sandbox said, where one of them ended it.
[[nodiscard]] std::string ending_text(const record::Record& record, std::string_view detail);

}  // namespace agentd::loop
