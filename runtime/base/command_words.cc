#include "runtime/base/command_words.h"

#include <algorithm>

namespace sbx {
namespace {

Result<void> set(const CommandOption& option, const std::string& value,
                 const std::string& see_help) {
  const std::string name(option.name);
  if (value.empty()) return invalid(name + " needs a value", see_help);
  if (!option.value->empty()) return invalid(name + " is given twice", "give it once");
  if (option.absolute_path && value.front() != '/') {
    return invalid(name + " " + value + " is not an absolute path");
  }
  *option.value = value;
  return {};
}

// `current` is null before the first.
Result<const CommandFlag*> choose(const CommandFlag* current, const CommandFlag& given) {
  if (current == nullptr || current->name == given.name) return &given;
  if (current->only_tells) return current;
  if (given.only_tells) return &given;
  return invalid(
      std::string(current->name) + " and " + std::string(given.name) + " are two things to do",
      "give one of them");
}

}  // namespace

Result<CommandWords> take_apart(const std::vector<std::string>& words,
                                std::span<const CommandFlag> flags,
                                std::span<const CommandOption> options,
                                const std::string& see_help) {
  CommandWords taken;
  const CommandFlag* chosen = nullptr;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-')) {
      taken.plain.push_back(word);
      continue;
    }
    const std::string name = word.substr(0, word.find('='));
    const auto flag = std::ranges::find(flags, word, &CommandFlag::name);
    const auto option = std::ranges::find(options, name, &CommandOption::name);
    if (flag != flags.end()) {
      SBX_ASSIGN(chosen, choose(chosen, *flag));
    } else if (option == options.end()) {
      return invalid("unknown option " + name, see_help);
    } else if (name.size() < word.size()) {
      SBX_TRY(set(*option, word.substr(name.size() + 1), see_help));
    } else {
      SBX_TRY(set(*option, i + 1 < words.size() ? words[++i] : std::string(), see_help));
    }
  }
  if (chosen != nullptr) taken.flag = chosen->name;
  return taken;
}

}  // namespace sbx
