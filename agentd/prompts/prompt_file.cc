#include "agentd/prompts/prompt_file.h"

#include <algorithm>

namespace agentd::prompts {
namespace {

constexpr std::string_view kOpen = "<!-- ";
constexpr std::string_view kClose = " -->";

std::string_view without_blank_lines(std::string_view text) {
  while (text.starts_with('\n')) text.remove_prefix(1);
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string_view PromptFile::section(std::string_view name) const {
  const auto found = std::find_if(sections.begin(), sections.end(),
                                  [name](const auto& each) { return each.first == name; });
  return found == sections.end() ? std::string_view() : std::string_view(found->second);
}

sbx::Result<PromptFile> parse_prompt(std::string_view text) {
  PromptFile file;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(kOpen) && line.ends_with(kClose)) {
      const std::size_t length = line.size() - kOpen.size() - kClose.size();
      file.sections.emplace_back(line.substr(kOpen.size(), length), "");
    } else if (!file.sections.empty()) {
      file.sections.back().second.append(line).push_back('\n');
    } else {
      return sbx::invalid("text before the first section");
    }
  }
  if (file.sections.empty()) return sbx::invalid("no section");
  for (auto& [name, body] : file.sections) body = without_blank_lines(body);
  return file;
}

std::string fill(std::string_view text,
                 const std::map<std::string, std::string, std::less<>>& values) {
  std::string result;
  while (!text.empty()) {
    const std::size_t open = text.find("{{");
    const std::size_t close = open == std::string_view::npos ? open : text.find("}}", open);
    if (close == std::string_view::npos) break;
    const auto value = values.find(text.substr(open + 2, close - open - 2));
    result += text.substr(0, open);
    if (value == values.end()) {
      result += text.substr(open, close + 2 - open);
    } else {
      result += value->second;
    }
    text.remove_prefix(close + 2);
  }
  result += text;
  return result;
}

}  // namespace agentd::prompts
