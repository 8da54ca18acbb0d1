#include "runtime/collect/names.h"

#include <algorithm>

#include "runtime/base/utf8.h"

namespace sbx::collect {
namespace {

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// True when the text at `offset` would be read as an escape of ours.
bool reads_as_escape(std::string_view text, std::size_t offset) {
  return offset + 4 <= text.size() && text[offset] == '\\' && text[offset + 1] == 'x' &&
         is_hex_digit(text[offset + 2]) && is_hex_digit(text[offset + 3]);
}

}  // namespace

std::string render_path(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size();) {
    const DecodedChar next = decode_utf8(raw, i);
    if (!next.valid) {
      for (std::size_t k = 0; k < next.length; ++k) append_hex_byte(text, raw[i + k]);
    } else if (reads_as_escape(raw, i)) {
      append_hex_byte(text, raw[i]);
    } else {
      text.append(raw, i, next.length);
    }
    i += next.length;
  }
  return text;
}

bool is_plain_relative_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPathBytes) return false;
  if (path.find('\0') != std::string_view::npos) return false;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view component = path.substr(start, end - start);
    if (component.empty() || component == "." || component == "..") return false;
    start = end + 1;
  }
  return true;
}

}  // namespace sbx::collect
