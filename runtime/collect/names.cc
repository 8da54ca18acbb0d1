#include "runtime/collect/names.h"

#include <algorithm>
#include <optional>

#include "runtime/collect/utf8.h"

namespace sbx::collect {
namespace {

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

// The byte that `\xNN` at `offset` stands for; nullopt when there is no such escape.
std::optional<char> escape_at(std::string_view text, std::size_t offset) {
  if (offset + 4 > text.size() || text[offset] != '\\' || text[offset + 1] != 'x') {
    return std::nullopt;
  }
  const auto high = hex_digit(text[offset + 2]);
  const auto low = hex_digit(text[offset + 3]);
  if (!high || !low) return std::nullopt;
  return static_cast<char>(*high << 4 | *low);
}

}  // namespace

std::string render_path(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size();) {
    const DecodedChar next = decode_utf8(raw, i);
    if (!next.valid) {
      for (std::size_t k = 0; k < next.length; ++k) append_hex_byte(text, raw[i + k]);
    } else if (escape_at(raw, i)) {
      append_hex_byte(text, raw[i]);
    } else {
      text.append(raw, i, next.length);
    }
    i += next.length;
  }
  return text;
}

std::string unrender_path(std::string_view rendered) {
  std::string raw;
  raw.reserve(rendered.size());
  for (std::size_t i = 0; i < rendered.size();) {
    const auto byte = escape_at(rendered, i);
    raw += byte ? *byte : rendered[i];
    i += byte ? 4 : 1;
  }
  return raw;
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
