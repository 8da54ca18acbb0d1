#include "runtime/policy/language.h"

#include <regex.h>

#include <algorithm>

#include "runtime/policy/shipped.h"

namespace sbx::policy {
namespace {

// An interpreter's last words stand at the end.
constexpr std::size_t kScannedBytes = 16 * 1024;

// A compiled pattern; one that does not compile (sbx-policyc refuses those) matches nothing.
class Pattern {
 public:
  explicit Pattern(const std::string& text)
      : valid_(::regcomp(&regex_, text.c_str(), REG_EXTENDED | REG_NEWLINE) == 0) {}
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() {
    if (valid_) ::regfree(&regex_);
  }

  // Group `group` of the last match.
  [[nodiscard]] std::optional<std::string> last(std::string text, std::size_t group) const {
    std::optional<std::string> found;
    if (!valid_) return found;
    regmatch_t matches[2];
    const char* rest = text.c_str();
    int flags = 0;
    while (::regexec(&regex_, rest, 2, matches, flags) == 0 && matches[0].rm_eo > 0) {
      if (matches[group].rm_so >= 0) {
        found.emplace(rest + matches[group].rm_so, rest + matches[group].rm_eo);
      }
      rest += matches[0].rm_eo;
      flags = rest[-1] == '\n' ? 0 : REG_NOTBOL;
    }
    return found;
  }

 private:
  regex_t regex_{};
  bool valid_;
};

// The end of `text`, from the start of a line, without the NULs at which regexec would stop.
std::string tail_of(std::string_view text) {
  if (text.size() > kScannedBytes) {
    text.remove_prefix(text.size() - kScannedBytes);
    const std::size_t line = text.find('\n');
    if (line != std::string_view::npos) text.remove_prefix(line + 1);
  }
  std::string tail(text);
  std::replace(tail.begin(), tail.end(), '\0', ' ');
  return tail;
}

}  // namespace

const std::vector<Language>& languages() {
  static const std::vector<Language> all = make_shipped_languages();
  return all;
}

const Language* find_language(std::string_view name_or_alias) {
  for (const Language& language : languages()) {
    const auto& aliases = language.aliases;
    if (language.name == name_or_alias ||
        std::find(aliases.begin(), aliases.end(), name_or_alias) != aliases.end()) {
      return &language;
    }
  }
  return nullptr;
}

const Language* language_of_file(std::string_view file_name) {
  for (const Language& language : languages()) {
    for (const std::string& extension : language.extensions) {
      if (file_name.size() > extension.size() && file_name.ends_with(extension)) return &language;
    }
  }
  return nullptr;
}

std::optional<std::string> missing_module(const Language& language, std::string_view stderr_text) {
  return Pattern(language.missing_module_pattern).last(tail_of(stderr_text), 1);
}

bool is_syntax_error(const Language& language, std::string_view stderr_text) {
  return Pattern(language.syntax_error_pattern).last(tail_of(stderr_text), 0).has_value();
}

}  // namespace sbx::policy
