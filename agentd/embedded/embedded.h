// Files that are compiled into agentd as they are (CMakeLists.txt: agent_embed). Constant.
#pragma once

#include <string_view>
#include <vector>

namespace agentd::embedded {

struct File {
  std::string_view name;  // without directory and extension
  std::string_view text;
};

[[nodiscard]] const std::vector<File>& prompts();          // prompts/*.vN.md
[[nodiscard]] const std::vector<File>& demo_recordings();  // examples/recordings/*.jsonl
[[nodiscard]] const std::vector<File>& documents();        // "openapi"

// "" for a name that there is not.
[[nodiscard]] std::string_view find(const std::vector<File>& files, std::string_view name);

}  // namespace agentd::embedded
