#include "runtime/base/base64.h"

#include <array>
#include <cstdint>

namespace sbx {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  for (std::uint8_t& digit : digits) digit = kNoDigit;
  for (std::uint8_t i = 0; i < 64; ++i) digits[static_cast<std::uint8_t>(kAlphabet[i])] = i;
  return digits;
}
constexpr std::array<std::uint8_t, 256> kDigits = make_digits();

std::uint8_t digit_of(char c) {
  return kDigits[static_cast<std::uint8_t>(c)];
}

// The last group: two or three digits, the rest '='. The bits that no byte gets must be zero.
bool decode_tail(std::string_view group, std::string& bytes) {
  const bool two = group[2] == '=';
  const std::uint32_t first = digit_of(group[0]);
  const std::uint32_t second = digit_of(group[1]);
  const std::uint32_t third = two ? 0U : digit_of(group[2]);
  if (first == kNoDigit || second == kNoDigit || third == kNoDigit) return false;
  const std::uint32_t bits = first << 18 | second << 12 | third << 6;
  if ((bits & (two ? 0xFFFFU : 0xFFU)) != 0) return false;
  bytes += static_cast<char>(bits >> 16);
  if (!two) bytes += static_cast<char>(bits >> 8 & 0xFFU);
  return true;
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  const auto byte_at = [&](std::size_t i) -> std::uint32_t {
    return i < bytes.size() ? static_cast<std::uint8_t>(bytes[i]) : 0U;
  };
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group = byte_at(i) << 16 | byte_at(i + 1) << 8 | byte_at(i + 2);
    text += kAlphabet[group >> 18];
    text += kAlphabet[(group >> 12) & 0x3F];
    text += i + 1 < bytes.size() ? kAlphabet[(group >> 6) & 0x3F] : '=';
    text += i + 2 < bytes.size() ? kAlphabet[group & 0x3F] : '=';
  }
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  const bool padded = !text.empty() && text.back() == '=';
  const std::size_t whole = padded ? text.size() - 4 : text.size();
  for (std::size_t i = 0; i < whole; i += 4) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const std::uint32_t digit = digit_of(text[i + j]);
      if (digit == kNoDigit) return std::nullopt;
      bits = bits << 6 | digit;
    }
    bytes += static_cast<char>(bits >> 16);
    bytes += static_cast<char>(bits >> 8 & 0xFFU);
    bytes += static_cast<char>(bits & 0xFFU);
  }
  if (padded && !decode_tail(text.substr(whole), bytes)) return std::nullopt;
  return bytes;
}

}  // namespace sbx
