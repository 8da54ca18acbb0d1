// A language's TOML text to a Language. Stage: policy, at build only: sbx-policyc makes constants
// of policy/languages/*.toml.
#pragma once

#include <string_view>

#include "runtime/base/result.h"
#include "runtime/policy/language.h"

namespace sbx::policy {

// kInvalid with file:line:key; also for patterns that do not compile.
[[nodiscard]] Result<Language> parse_language(std::string_view text, std::string_view origin);

}  // namespace sbx::policy
