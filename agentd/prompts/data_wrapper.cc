#include "agentd/prompts/data_wrapper.h"

#include <fmt/core.h>

#include "runtime/base/utf8.h"

namespace agentd::prompts {
namespace {

constexpr char32_t kFullWidth = 0xFEE0;  // added to '!'…'~'

char32_t narrow(char32_t c) {
  return c >= 0xFF01 && c <= 0xFF5E ? c - kFullWidth : c;
}

// Blanks, controls, and what no one can see.
bool is_filler(char32_t c) {
  return c <= 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD || c == 0x034F || c == 0x061C ||
         (c >= 0x115F && c <= 0x1160) || c == 0x1680 || (c >= 0x17B4 && c <= 0x17B5) ||
         (c >= 0x180B && c <= 0x180F) || (c >= 0x2000 && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202F) || (c >= 0x205F && c <= 0x206F) || c == 0x3000 ||
         c == 0x3164 || (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF || c == 0xFFFD ||
         (c >= 0xE0000 && c <= 0xE0FFF);
}

// True when "/data" or "data" follows at `at`, whatever filler stands between its characters.
bool names_data(std::string_view text, std::size_t at) {
  constexpr std::u32string_view kName = U"data";
  std::size_t matched = 0;
  while (at < text.size() && matched < kName.size()) {
    const sbx::DecodedChar next = sbx::decode_utf8(text, at);
    at += next.length;
    char32_t c = narrow(next.code_point);
    if (!next.valid || is_filler(c)) continue;
    if (matched == 0 && (c == U'/' || c == U'\\' || c == 0x2044 || c == 0x2215)) continue;
    if (c >= U'A' && c <= U'Z') c += U'a' - U'A';
    if (c != kName[matched]) return false;
    ++matched;
  }
  return matched == kName.size();
}

bool opens_tag(char32_t c) {
  return narrow(c) == U'<' || c == 0x2039 || c == 0x3008 || c == 0x27E8 || c == 0xFE64;
}

}  // namespace

std::string wrap_data(std::string_view text) {
  std::string clean;
  (void)sbx::append_replacing(clean, text);
  std::string result = "<data>\n";
  const std::string_view all(clean);
  for (std::size_t i = 0; i < all.size();) {
    const sbx::DecodedChar next = sbx::decode_utf8(all, i);
    if (opens_tag(next.code_point) && names_data(all, i + next.length)) {
      result += "&lt;";
    } else {
      result += all.substr(i, next.length);
    }
    i += next.length;
  }
  return result + "\n</data>";
}

std::string head_and_tail(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  const std::size_t third = limit / 3;
  const std::size_t head = sbx::utf8_boundary_before(text, third);
  const std::size_t tail = sbx::utf8_boundary_behind(text, text.size() - (limit - third));
  return fmt::format("{}\n[… {} bytes left out …]\n{}", text.substr(0, head), tail - head,
                     text.substr(tail));
}

}  // namespace agentd::prompts
