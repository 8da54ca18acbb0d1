#include "runtime/policy/quantity.h"

#include <fmt/core.h>

#include <algorithm>

namespace sbx::policy {
std::optional<std::uint64_t> parse_digits(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value)) {
      return std::nullopt;
    }
  }
  return value;
}

std::optional<std::uint64_t> parse_thousandths(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto whole = parse_digits(text.substr(0, dot));
  std::uint64_t value = 0;
  if (!whole || __builtin_mul_overflow(*whole, std::uint64_t{1000}, &value)) return std::nullopt;
  if (dot == std::string_view::npos) return value;
  const std::string_view decimals = text.substr(dot + 1);
  if (decimals.empty() || !std::all_of(decimals.begin(), decimals.end(), is_digit)) {
    return std::nullopt;
  }
  std::uint64_t fraction = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const char digit = i < decimals.size() ? decimals[i] : '0';
    fraction = fraction * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  if (decimals.size() > 3 && decimals[3] >= '5') ++fraction;
  if (__builtin_add_overflow(value, fraction, &value)) return std::nullopt;
  return value;
}

std::string thousandths_text(std::uint64_t value) {
  std::string text = std::to_string(value / 1000);
  if (value % 1000 == 0) return text;
  text += fmt::format(".{:03}", value % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t unit = 1;
  std::string_view digits = text;
  if (!digits.empty() && !is_digit(digits.back())) {
    const char suffix = digits.back();
    if (suffix == 'K' || suffix == 'k') unit = kKiB;
    if (suffix == 'M' || suffix == 'm') unit = kMiB;
    if (suffix == 'G' || suffix == 'g') unit = kGiB;
    if (unit != 1) digits.remove_suffix(1);
  }
  const auto number = parse_digits(digits);
  std::uint64_t bytes = 0;
  if (!number || __builtin_mul_overflow(*number, unit, &bytes)) {
    return invalid(fmt::format("'{}' is not a size: bytes, or a number with K, M or G", text));
  }
  return bytes;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes == 0) return "0";
  if (bytes % kGiB == 0) return std::to_string(bytes / kGiB) + "G";
  if (bytes % kMiB == 0) return std::to_string(bytes / kMiB) + "M";
  if (bytes % kKiB == 0) return std::to_string(bytes / kKiB) + "K";
  return std::to_string(bytes);
}

}  // namespace sbx::policy
