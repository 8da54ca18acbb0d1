// The prompt files of prompts/, as they were when agentd was built. Constant.
#pragma once

#include <string_view>
#include <vector>

namespace agentd::prompts {

struct ShippedPrompt {
  std::string_view name;  // "codegen.v1.python"
  std::string_view text;
};
[[nodiscard]] const std::vector<ShippedPrompt>& shipped_prompts();
// "" for a name that there is not.
[[nodiscard]] std::string_view shipped_prompt(std::string_view name);

}  // namespace agentd::prompts
