// Micro-dollars: what model calls cost, by list price.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

namespace agentd::record {

struct MicroDollars {
  std::int64_t value = 0;
  auto operator<=>(const MicroDollars&) const = default;
  MicroDollars& operator+=(MicroDollars other) {
    value += other.value;
    return *this;
  }
};

// A dollar for a million tokens is a micro-dollar for one. Rounded up.
[[nodiscard]] inline MicroDollars cost_of(std::int64_t input_tokens, std::int64_t output_tokens,
                                          double input_price, double output_price) {
  const double cost = static_cast<double>(input_tokens) * input_price +
                      static_cast<double>(output_tokens) * output_price;
  return {static_cast<std::int64_t>(std::ceil(cost - 1e-9))};
}

[[nodiscard]] inline double dollars(MicroDollars cost) {
  return static_cast<double>(cost.value) / 1e6;
}

}  // namespace agentd::record
