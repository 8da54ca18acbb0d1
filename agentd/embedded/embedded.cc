#include "agentd/embedded/embedded.h"

#include <algorithm>

// Made by agent_embed(): {name, begin, end} for each file, then a null name.
extern "C" {
struct AgentdEmbedded {
  const char* name;
  const char* begin;
  const char* end;
};
// NOLINTBEGIN(modernize-avoid-c-arrays)
extern const AgentdEmbedded agentd_prompts[];
extern const AgentdEmbedded agentd_recordings[];
extern const AgentdEmbedded agentd_documents[];
// NOLINTEND(modernize-avoid-c-arrays)
}

namespace agentd::embedded {
namespace {

std::vector<File> files_of(const AgentdEmbedded* table) {
  std::vector<File> files;
  for (; table->name != nullptr; ++table) {
    files.push_back(
        {table->name, {table->begin, static_cast<std::size_t>(table->end - table->begin)}});
  }
  return files;
}

}  // namespace

const std::vector<File>& prompts() {
  static const std::vector<File> kFiles = files_of(agentd_prompts);
  return kFiles;
}

const std::vector<File>& demo_recordings() {
  static const std::vector<File> kFiles = files_of(agentd_recordings);
  return kFiles;
}

const std::vector<File>& documents() {
  static const std::vector<File> kFiles = files_of(agentd_documents);
  return kFiles;
}

std::string_view find(const std::vector<File>& files, std::string_view name) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [name](const File& each) { return each.name == name; });
  return found == files.end() ? std::string_view() : found->text;
}

}  // namespace agentd::embedded
