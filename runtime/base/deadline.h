// A deadline of the steady clock as the timeout of poll(2). Stage: base.
#pragma once

#include <chrono>

namespace sbx {

// Milliseconds until `deadline`, rounded up so that it has passed when poll returns; 0 when it has.
// At most an hour, also for "none", which is time_point::max(): the caller looks again and waits
// on.
[[nodiscard]] inline int poll_timeout(
    std::chrono::steady_clock::time_point deadline,
    std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
  using std::chrono::milliseconds;
  constexpr milliseconds kLongest = std::chrono::hours(1);
  if (deadline <= now) return 0;
  if (deadline - now >= kLongest) return static_cast<int>(kLongest.count());
  return static_cast<int>(std::chrono::ceil<milliseconds>(deadline - now).count());
}

}  // namespace sbx
