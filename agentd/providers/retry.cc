#include "agentd/providers/retry.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string>

namespace agentd::providers {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool is_retryable(int status) {
  constexpr int kNotImplemented = 501;
  constexpr int kVersion = 505;
  if (status == 408 || status == 429) return true;
  return status >= 500 && status < 600 && status != kNotImplemented && status != kVersion;
}

milliseconds backoff(const RetryPolicy& policy, int next, double random) {
  const int doublings = std::clamp(next - 2, 0, 20);
  const milliseconds longest = std::min<milliseconds>(policy.base * (1LL << doublings), policy.cap);
  return milliseconds(
      static_cast<milliseconds::rep>(static_cast<double>(longest.count()) * (0.5 + random / 2)));
}

std::optional<seconds> parse_retry_after(std::string_view value,
                                         std::chrono::system_clock::time_point now) {
  constexpr std::int64_t kMost = 365LL * 24 * 3600;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (end == value.data() + value.size()) {
    if (error == std::errc()) return seconds(std::clamp<std::int64_t>(number, 0, kMost));
    // More than fits is a pause as well, longer than anybody waits.
    if (error == std::errc::result_out_of_range) return seconds(value.front() == '-' ? 0 : kMost);
  }
  std::tm time{};
  const std::string text(value);
  const char* rest = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &time);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  const auto date = std::chrono::system_clock::from_time_t(::timegm(&time));
  return std::clamp(std::chrono::ceil<seconds>(date - now), seconds(0), seconds(kMost));
}

}  // namespace agentd::providers
