#include "agentd/config/key_lines.h"

#include <fmt/core.h>

#include <cstdint>
#include <utility>

namespace agentd::config {

KeyLines::KeyLines(const sbx::TomlValue& root, std::string_view origin) : origin_(origin) {
  for (const sbx::TomlValue& item : root.items) {
    lines_[item.path] = item.line;
    for (const sbx::TomlValue& inner : item.items) lines_[inner.path] = inner.line;
  }
}

std::string KeyLines::place(const std::string& key) const {
  for (const std::string& name : {key, key.substr(0, key.find('.'))}) {
    const auto found = lines_.find(name);
    if (found != lines_.end()) return fmt::format("{}:{}: key '{}'", origin_, found->second, name);
  }
  return origin_.empty() ? fmt::format("key '{}'", key) : fmt::format("{}: key '{}'", origin_, key);
}

sbx::Error KeyLines::error(const std::string& key, const std::string& message,
                           std::string fix) const {
  return sbx::invalid(place(key) + ": " + message, std::move(fix));
}

}  // namespace agentd::config
