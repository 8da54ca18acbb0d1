#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace sbx {

struct ConfigFile {
  std::string path;
  std::string text;
};

// A daemon's settings: the file `named`, which must be there; for "" the first that is there of
// /etc/sbx/<name> and the user's own, $XDG_CONFIG_HOME/sbx/<name> or ~/.config/sbx/<name>. nullopt:
// there is none. Errors: what the host lacks, with the fix, for a file that cannot be read or has
// more than kMaxTomlBytes.
[[nodiscard]] Result<std::optional<ConfigFile>> find_config_file(const std::string& named,
                                                                 std::string_view name);

}  // namespace sbx
