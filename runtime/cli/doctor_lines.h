// Lines of the host's files, as the checks of doctor take them apart. Stage: edge (doctor).
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace sbx::cli {

// Views into `text`. Nothing after a separator at its end.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace sbx::cli
