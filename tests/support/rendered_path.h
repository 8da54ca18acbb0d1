// What tests ask of names and text that were made fit to be shown: the ways back.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/utf8.h"

namespace sbx::test {

inline bool is_utf8(std::string_view bytes) {
  std::string text;
  return append_replacing(text, bytes);
}

// The inverse of collect::render_path: each `\xNN` is a byte.
inline std::string unrender_path(std::string_view rendered) {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  const auto is_digit = [&](char c) { return kDigits.find(c) != std::string_view::npos; };
  std::string raw;
  for (std::size_t i = 0; i < rendered.size();) {
    const std::string_view rest = rendered.substr(i);
    if (rest.size() >= 4 && rest.starts_with("\\x") && is_digit(rest[2]) && is_digit(rest[3])) {
      raw += static_cast<char>(std::stoi(std::string(rest.substr(2, 2)), nullptr, 16));
      i += 4;
    } else {
      raw += rest[0];
      ++i;
    }
  }
  return raw;
}

}  // namespace sbx::test
