// Quantities as people write them: whole numbers, thousandths, sizes. Stage: policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace sbx::policy {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

// ASCII alone, whatever the locale.
[[nodiscard]] constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
// Digits only: no sign, no space, no 0x. nullopt also when it does not fit.
[[nodiscard]] std::optional<std::uint64_t> parse_digits(std::string_view text);

// "0.5" in thousandths, rounded to the nearest. No sign, exponent, NaN or infinity.
[[nodiscard]] std::optional<std::uint64_t> parse_thousandths(std::string_view text);
[[nodiscard]] std::string thousandths_text(std::uint64_t value);

// Digits with an optional K, M or G (1024-based, either case).
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace sbx::policy
