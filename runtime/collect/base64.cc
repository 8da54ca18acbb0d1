#include "runtime/collect/base64.h"

#include <cstdint>

namespace sbx::collect {

std::string encode_base64(std::string_view bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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

}  // namespace sbx::collect
