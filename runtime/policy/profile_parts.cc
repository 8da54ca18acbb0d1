#include "runtime/policy/profile_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/toml.h"
#include "runtime/policy/limits.h"

namespace sbx::policy {
namespace {

// A basic string of TOML.
std::string quoted(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f) {
      all += fmt::format("\\u{:04x}", byte);
      continue;
    }
    if (c == '"' || c == '\\') all += '\\';
    all += c;
  }
  return all + '"';
}

bool is_default(const TomlValue& limit) {
  Limits limits;
  (void)set_limit(limits, limit.key, limit.text);  // parse_policy has read it already
  return limits == Limits{};
}

std::string text_of(const TomlValue* value) {
  return value == nullptr ? std::string() : value->text;
}

std::vector<std::string> texts(const TomlValue* list) {
  std::vector<std::string> all;
  if (list == nullptr) return all;
  for (const TomlValue& item : list->items) all.push_back(item.text);
  return all;
}

std::string list_text(std::string_view key, const std::vector<std::string>& values) {
  if (values.empty()) return {};
  std::vector<std::string> all;
  for (const std::string& value : values) all.push_back(quoted(value));
  return fmt::format("{} = [{}]\n", key, fmt::join(all, ", "));
}

}  // namespace

Result<ProfileParts> profile_parts(std::string_view text) {
  SBX_ASSIGN(const TomlValue root, parse_toml(text, "profile"));
  ProfileParts parts{text_of(root.find("name")), text_of(root.find("description"))};
  if (const TomlValue* const limits = root.find("limits")) {
    for (const TomlValue& limit : limits->items) {
      if (is_default(limit)) continue;
      parts.limits.emplace_back(limit.key,
                                limit.kind == TomlKind::kString ? quoted(limit.text) : limit.text);
    }
  }
  if (const TomlValue* const seccomp = root.find("seccomp")) {
    parts.allow = texts(seccomp->find("allow"));
    parts.hostile = texts(seccomp->find("hostile"));
    if (const TomlValue* const deny = seccomp->find("deny")) {
      for (const TomlValue& call : deny->items) parts.deny.emplace_back(call.key, call.text);
    }
  }
  return parts;
}

std::string profile_text(const ProfileParts& parts, std::string_view comments) {
  std::string text =
      fmt::format("name = {}\ndescription = {}\n", quoted(parts.name), quoted(parts.description));
  if (!parts.limits.empty()) text += "[limits]\n";
  for (const auto& [name, value] : parts.limits) text += fmt::format("{} = {}\n", name, value);
  std::vector<std::string> denied;
  for (const auto& [call, error] : parts.deny) {
    denied.push_back(fmt::format("{} = {}", call, quoted(error)));
  }
  text += fmt::format("[seccomp]\n{}{}", comments, list_text("allow", parts.allow));
  if (!denied.empty()) text += fmt::format("deny = {{ {} }}\n", fmt::join(denied, ", "));
  return text + list_text("hostile", parts.hostile);
}

}  // namespace sbx::policy
