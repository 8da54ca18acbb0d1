#include "runtime/policy/language_file.h"

#include <fmt/core.h>
#include <regex.h>

#include <algorithm>

#include "runtime/base/toml.h"

namespace sbx::policy {
namespace {

bool is_plain_name(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

Result<std::vector<std::string>> required_list(std::string_view origin, const TomlValue& root,
                                               std::string_view key) {
  const TomlValue* value = root.find(key);
  if (value == nullptr) return toml_error(origin, root, fmt::format("key '{}' is missing", key));
  return string_list(origin, *value);
}

// regcomp(3) copies what is repeated, and what is in the copies again: a line of them takes
// gigabytes.
constexpr std::size_t kMaxPatternBytes = 256;
constexpr std::ptrdiff_t kMaxPatternRepetitions = 8;

const char* pattern_trouble(const std::string& pattern) {
  if (pattern.size() > kMaxPatternBytes) return "is longer than 256 bytes";
  if (pattern.find('{') != std::string::npos) return "must not use { }";
  const auto repetitions = std::count(pattern.begin(), pattern.end(), '+');
  return repetitions > kMaxPatternRepetitions ? "has more than 8 times +" : nullptr;
}

Result<std::string> read_pattern(std::string_view origin, const TomlValue& root,
                                 std::string_view key, std::size_t groups) {
  SBX_ASSIGN(const std::string pattern, required_string(origin, root, key));
  if (const char* const trouble = pattern_trouble(pattern); trouble != nullptr) {
    return toml_error(origin, *root.find(key), trouble);
  }
  regex_t compiled;
  const int rc = ::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NEWLINE);
  if (rc != 0) {
    char message[128];
    (void)::regerror(rc, &compiled, message, sizeof message);  // truncates at worst
    return toml_error(origin, *root.find(key), message);
  }
  const std::size_t found = compiled.re_nsub;
  ::regfree(&compiled);
  if (found < groups) return toml_error(origin, *root.find(key), "must have a group");
  return pattern;
}

Result<std::vector<std::pair<std::string, std::string>>> read_env(std::string_view origin,
                                                                  const TomlValue& root) {
  std::vector<std::pair<std::string, std::string>> env;
  const TomlValue* table = root.find("env");
  if (table == nullptr) return env;
  SBX_TRY(check_kind(origin, *table, TomlKind::kTable));
  for (const TomlValue& item : table->items) {
    SBX_ASSIGN(auto value, required_string(origin, *table, item.key));
    env.emplace_back(item.key, std::move(value));
  }
  return env;
}

}  // namespace

Result<Language> parse_language(std::string_view text, std::string_view origin) {
  SBX_ASSIGN(const TomlValue root, parse_toml(text, origin));
  SBX_TRY(check_keys(origin, root,
                     {"name", "aliases", "extensions", "file", "argv", "env", "image",
                      "missing_module_pattern", "syntax_error_pattern"}));
  Language language;
  SBX_ASSIGN(language.name, required_string(origin, root, "name"));
  if (!is_plain_name(language.name)) {
    return toml_error(origin, *root.find("name"), "must be of a-z 0-9");
  }
  SBX_ASSIGN(language.aliases, required_list(origin, root, "aliases"));
  SBX_ASSIGN(language.extensions, required_list(origin, root, "extensions"));
  SBX_ASSIGN(language.file, required_string(origin, root, "file"));
  if (language.file.empty() || language.file.find('/') != std::string::npos) {
    return toml_error(origin, *root.find("file"), "must be the name of a file below /code");
  }
  SBX_ASSIGN(language.argv, required_list(origin, root, "argv"));
  if (language.argv.empty() || !language.argv.front().starts_with('/')) {
    return toml_error(origin, *root.find("argv"), "must begin with an absolute path");
  }
  SBX_ASSIGN(language.env, read_env(origin, root));
  SBX_ASSIGN(language.image, required_string(origin, root, "image"));
  SBX_ASSIGN(language.missing_module_pattern,
             read_pattern(origin, root, "missing_module_pattern", 1));
  SBX_ASSIGN(language.syntax_error_pattern, read_pattern(origin, root, "syntax_error_pattern", 0));
  return language;
}

}  // namespace sbx::policy
