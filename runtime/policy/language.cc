#include "runtime/policy/language.h"

#include <algorithm>

#include "runtime/policy/shipped.h"

namespace sbx::policy {

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

}  // namespace sbx::policy
