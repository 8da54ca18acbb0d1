#include "agentd/prompts/shipped.h"

#include <algorithm>

// Made by CMakeLists.txt: {name, begin, end} for each file, then a null name.
extern "C" {
struct AgentdEmbedded {
  const char* name;
  const char* begin;
  const char* end;
};
extern const AgentdEmbedded agentd_prompts[];  // NOLINT(modernize-avoid-c-arrays)
}

namespace agentd::prompts {

const std::vector<ShippedPrompt>& shipped_prompts() {
  static const std::vector<ShippedPrompt> kAll = [] {
    std::vector<ShippedPrompt> all;
    for (const AgentdEmbedded* each = agentd_prompts; each->name != nullptr; ++each) {
      all.push_back({each->name, {each->begin, static_cast<std::size_t>(each->end - each->begin)}});
    }
    return all;
  }();
  return kAll;
}

std::string_view shipped_prompt(std::string_view name) {
  const auto& all = shipped_prompts();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const ShippedPrompt& each) { return each.name == name; });
  return found == all.end() ? std::string_view() : found->text;
}

}  // namespace agentd::prompts
