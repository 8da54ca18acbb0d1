#include "runtime/base/escape.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "runtime/base/utf8.h"

namespace sbx {
namespace {

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F);
}

// Characters that change how others are laid out, or that no one can see.
bool is_deceptive(char32_t c) {
  return c == 0x061C || (c >= 0x200B && c <= 0x200F && c != 0x200C && c != 0x200D) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
         (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE007F);
}

void append_control(std::string& out, char32_t c) {
  if (c == U'\n') {
    out += "\\n";
  } else if (c == U'\t') {
    out += "\\t";
  } else if (c == U'\r') {
    out += "\\r";
  } else {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<std::uint32_t>(c));
  }
}

}  // namespace

std::string escape_for_terminal(std::string_view text, Keep keep) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const DecodedChar next = decode_utf8(text, i);
    const char32_t c = next.code_point;
    const bool kept = keep == Keep::kNewlinesAndTabs && (c == U'\n' || c == U'\t');
    if (!next.valid) {
      for (std::size_t k = 0; k < next.length; ++k) append_hex_byte(out, text[i + k]);
    } else if (is_control(c) && !kept) {
      append_control(out, c);
    } else if (is_deceptive(c)) {
      fmt::format_to(std::back_inserter(out), "\\u{{{:04x}}}", static_cast<std::uint32_t>(c));
    } else {
      out.append(text, i, next.length);
    }
    i += next.length;
  }
  return out;
}

bool has_control_character(std::string_view name) {
  return std::any_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

}  // namespace sbx
