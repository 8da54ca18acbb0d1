// Language: how a file of a language is started inside. Stage: policy.
// Data: policy/languages/*.toml.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sbx::policy {

struct Language {
  std::string name;                     // "python"
  std::vector<std::string> aliases;     // "js"
  std::vector<std::string> extensions;  // ".py"
  std::string file;                     // "main.py": the name below /code
  std::vector<std::string> argv;  // {"/usr/bin/python3", "/code/main.py"}; the caller's args follow
  std::vector<std::pair<std::string, std::string>> env;
  std::string image;  // key in the manifest's packages: "python"
  // POSIX extended, line by line (REG_NEWLINE), over the end of stderr.
  std::string missing_module_pattern;  // group 1 is the module
  std::string syntax_error_pattern;
};

// All shipped languages, in the order of their file names.
[[nodiscard]] const std::vector<Language>& languages();
// By name or alias; null when unknown.
[[nodiscard]] const Language* find_language(std::string_view name_or_alias);
// By a file name's extension; null when unknown.
[[nodiscard]] const Language* language_of_file(std::string_view file_name);

}  // namespace sbx::policy
