// Where the keys of a file stand, for errors about their values. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/toml.h"

namespace agentd::config {

class KeyLines {
 public:
  KeyLines() = default;  // of no file: the defaults
  KeyLines(const sbx::TomlValue& root, std::string_view origin);

  // "FILE:LINE: key 'provider.base_url'": what an error begins with. Of a key that the file does
  // not have, its table's; without that, what is known.
  [[nodiscard]] std::string place(const std::string& key) const;
  // kInvalid.
  [[nodiscard]] sbx::Error error(const std::string& key, const std::string& message,
                                 std::string fix = {}) const;

 private:
  std::string origin_;
  std::map<std::string, std::uint32_t> lines_;  // by path
};

}  // namespace agentd::config
