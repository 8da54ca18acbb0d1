// What the sandbox offers, in the words of a prompt. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "agentd/sandbox/info.h"

namespace agentd::prompts {

inline constexpr std::size_t kMaxEnvironmentBytes = 1536;

// For a program in `language`: a list, each line with "- " in front. Packages that do not fit are
// counted.
[[nodiscard]] std::string describe_environment(const sandbox::SandboxInfo& info,
                                               std::string_view language);
// For tool calling: all languages.
[[nodiscard]] std::string describe_environment(const sandbox::SandboxInfo& info);

}  // namespace agentd::prompts
