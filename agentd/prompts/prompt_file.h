// A prompt file, taken apart into its messages. Pure. prompts/README.md has the format.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace agentd::prompts {

struct PromptFile {
  // {"system", "You write …"}, in the order of the file, without blank lines around.
  std::vector<std::pair<std::string, std::string>> sections;
  // The first of that name; "" when there is none.
  [[nodiscard]] std::string_view section(std::string_view name) const;
};

// kInvalid for text before the first section, or a file without sections.
[[nodiscard]] sbx::Result<PromptFile> parse_prompt(std::string_view text);

// Puts `values` in place of their {{names}}, once: what a value holds is not looked at again.
// SECURITY: so text of strangers in one value cannot ask for another one.
[[nodiscard]] std::string fill(std::string_view text,
                               const std::map<std::string, std::string, std::less<>>& values);

}  // namespace agentd::prompts
