#include "runtime/base/utf8.h"

#include <cstdint>

namespace sbx {
namespace {

// What a lead byte promises: how many bytes follow, and the range of the first of them (Unicode 15,
// table 3-7, which is what keeps overlong forms and surrogates out).
struct Lead {
  std::size_t following;
  std::uint8_t low, high;
};

Lead lead_of(std::uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

bool is_continuation(char byte) {
  return (static_cast<std::uint8_t>(byte) & 0xC0U) == 0x80U;
}

// Where what `at` lies inside of begins and ends; both `at` when it lies inside of nothing.
struct Around {
  std::size_t begin, end;
};

Around around(std::string_view bytes, std::size_t at) {
  constexpr std::size_t kMostFollowing = 3;
  if (at == bytes.size()) return {at, at};
  std::size_t begin = at;
  while (begin > 0 && at - begin < kMostFollowing && is_continuation(bytes[begin])) --begin;
  // Decoding comes by every byte that continues nothing, whatever stands before it.
  if (is_continuation(bytes[begin])) return {at, at};
  const std::size_t end = begin + decode_utf8(bytes, begin).length;
  return end > at ? Around{begin, end} : Around{at, at};
}

}  // namespace

std::size_t utf8_boundary_before(std::string_view bytes, std::size_t at) {
  return around(bytes, at).begin;
}

std::size_t utf8_boundary_behind(std::string_view bytes, std::size_t at) {
  const auto [begin, end] = around(bytes, at);
  return begin == at ? at : end;
}

DecodedChar decode_utf8(std::string_view bytes, std::size_t offset) {
  const auto byte_at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[offset + i]); };
  const std::uint8_t first = byte_at(0);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = lead_of(first);
  if (lead.following == 0) return {0, 1, false};
  char32_t code_point = first & (0x3FU >> lead.following);
  for (std::size_t i = 1; i <= lead.following; ++i) {
    if (offset + i >= bytes.size()) return {0, i, false};
    const std::uint8_t low = i == 1 ? lead.low : std::uint8_t{0x80};
    const std::uint8_t high = i == 1 ? lead.high : std::uint8_t{0xBF};
    if (byte_at(i) < low || byte_at(i) > high) return {0, i, false};
    code_point = (code_point << 6) | (byte_at(i) & 0x3FU);
  }
  return {code_point, lead.following + 1, true};
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&text](char32_t value) { text += static_cast<char>(value); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

bool append_replacing(std::string& text, std::string_view bytes) {
  bool clean = true;
  text.reserve(text.size() + bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const DecodedChar next = decode_utf8(bytes, i);
    if (next.valid) {
      text.append(bytes, i, next.length);
    } else {
      text += "\xEF\xBF\xBD";
      clean = false;
    }
    i += next.length;
  }
  return clean;
}

void append_hex_byte(std::string& text, char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto value = static_cast<std::uint8_t>(byte);
  text += "\\x";
  text += kDigits[value >> 4];
  text += kDigits[value & 0xF];
}

}  // namespace sbx
