// When to ask a server again. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace agentd::providers {

struct RetryPolicy {
  int tries = 4;
  std::chrono::milliseconds base{500};            // the longest wait before the second try
  std::chrono::milliseconds cap{8000};            // and before any
  std::chrono::milliseconds retry_after{30'000};  // a server that asks for more is given up on
};

// 408, 429, 5xx but 501 and 505, and 529.
[[nodiscard]] bool is_retryable(int status);

// Before try `next` (2, 3, …): between half and all of base·2ⁿ, at most cap; `random` is in [0, 1).
[[nodiscard]] std::chrono::milliseconds backoff(const RetryPolicy& policy, int next, double random);

// The header Retry-After: seconds, or a date compared with `now`. Never negative. nullopt for
// anything else.
[[nodiscard]] std::optional<std::chrono::seconds> parse_retry_after(
    std::string_view value, std::chrono::system_clock::time_point now);

}  // namespace agentd::providers
