#include "agentd/render/display_width.h"

#include <cwchar>

#include "runtime/base/utf8.h"

namespace agentd::render {
namespace {

std::size_t width_of(char32_t c) {
  const int width = ::wcwidth(static_cast<wchar_t>(c));
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const sbx::DecodedChar next = sbx::decode_utf8(text, i);
    width += width_of(next.code_point);
    i += next.length;
  }
  return width;
}

std::string cut_to_width(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::string cut;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < text.size();) {
    const sbx::DecodedChar next = sbx::decode_utf8(text, i);
    taken += width_of(next.code_point);
    if (taken + 1 > width) break;
    cut += text.substr(i, next.length);
    i += next.length;
  }
  return width == 0 ? cut : cut + "…";
}

}  // namespace agentd::render
