#include "agentd/config/key_fields.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "agentd/redact/redactor.h"

namespace agentd::config {
namespace {

constexpr std::size_t kLongestName = 255;
constexpr const char* kFile = "provider.api_key_file";
constexpr const char* kCredential = "provider.api_key_credential";
constexpr const char* kVariable = "provider.api_key_env";
constexpr const char* kWhereKeysGo =
    "put the key into a file that others cannot read, and that file's path into api_key_file";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// environ(7) allows more; a shell and systemd do not.
bool is_variable_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && !is_digit(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_digit(c) || is_letter(c) || c == '_'; });
}

// Many vendors give their keys no shape. A word of so many letters and digits is not a name.
bool has_a_word_of_chance(std::string_view text) {
  constexpr int kWord = 20;
  constexpr int kDigits = 2;
  int length = 0;
  int digits = 0;
  for (const char c : text) {
    const bool goes_on = is_digit(c) || is_letter(c);
    length = goes_on ? length + 1 : 0;
    digits = goes_on ? digits + (is_digit(c) ? 1 : 0) : 0;
    if (length >= kWord && digits >= kDigits && digits < length) return true;
  }
  return false;
}

bool looks_like_a_key(std::string_view text) {
  if (!redact::Redactor().find(text).empty()) return true;
  // Directories may be named by chance: by a hash, say.
  if (text.find('/') != std::string_view::npos) return false;
  return text.starts_with("sk-") || has_a_word_of_chance(text);
}

sbx::Result<void> check_key_field(const KeyLines& lines, const char* name,
                                  const std::string& value) {
  if (!looks_like_a_key(value)) return {};
  return lines.error(name, "it looks like the key itself, and is to say where the key is",
                     kWhereKeysGo);
}

}  // namespace

std::string set_key_field(const AgentConfig& config) {
  if (!config.api_key_file.empty()) return kFile;
  if (!config.api_key_credential.empty()) return kCredential;
  return config.api_key_env.empty() ? "" : kVariable;
}

sbx::Result<void> check_key_fields(const AgentConfig& config, const KeyLines& lines) {
  SBX_TRY(check_key_field(lines, kFile, config.api_key_file));
  SBX_TRY(check_key_field(lines, kCredential, config.api_key_credential));
  SBX_TRY(check_key_field(lines, kVariable, config.api_key_env));
  // SECURITY: not repeated, whatever it is: a key of a shape that nobody knows is no name either.
  if (!config.api_key_env.empty() && !is_variable_name(config.api_key_env)) {
    return lines.error(kVariable, "it is no name of a variable: letters, digits, \"_\"",
                       kWhereKeysGo);
  }
  const std::string& credential = config.api_key_credential;
  if (credential.find('/') != std::string::npos || credential == "." || credential == "..") {
    return lines.error(kCredential, "it is no name of a systemd credential",
                       "it is what LoadCredential= calls it, as \"agentd.key\"");
  }
  const int keys = (config.api_key_file.empty() ? 0 : 1) + (credential.empty() ? 0 : 1) +
                   (config.api_key_env.empty() ? 0 : 1);
  if (keys > 1) {
    return lines.error("provider", "at most one of api_key_file, api_key_credential, api_key_env");
  }
  return {};
}

}  // namespace agentd::config
