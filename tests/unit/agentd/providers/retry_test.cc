#include "agentd/providers/retry.h"

#include <gtest/gtest.h>

namespace agentd::providers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Retry, WaitsGrowToTheirCapAndVary) {
  const RetryPolicy policy{.base = milliseconds(500), .cap = milliseconds(3000)};
  EXPECT_EQ(backoff(policy, 2, 0), milliseconds(250));
  EXPECT_NEAR(static_cast<double>(backoff(policy, 2, 0.999999).count()), 500, 1);
  EXPECT_EQ(backoff(policy, 3, 0), milliseconds(500));
  EXPECT_EQ(backoff(policy, 5, 0), milliseconds(1500)) << "half the cap";
  EXPECT_EQ(backoff(policy, 1000, 0), milliseconds(1500));
}

TEST(Retry, OnlyWhatMayPassIsTriedAgain) {
  for (const int status : {408, 429, 500, 502, 503, 504, 529, 599})
    EXPECT_TRUE(is_retryable(status));
  for (const int status : {200, 400, 401, 403, 404, 413, 422, 501, 505, 600}) {
    EXPECT_FALSE(is_retryable(status));
  }
}

TEST(Retry, RetryAfterIsSecondsOrADate) {
  const auto now = std::chrono::system_clock::from_time_t(1'700'000'000);  // 22:13:20
  EXPECT_EQ(parse_retry_after("7", now), seconds(7));
  EXPECT_EQ(parse_retry_after("0", now), seconds(0));
  EXPECT_EQ(parse_retry_after("-3", now), seconds(0));
  EXPECT_EQ(parse_retry_after("99999999999999999999999", now), seconds(365 * 24 * 3600));
  EXPECT_EQ(parse_retry_after("-99999999999999999999999", now), seconds(0));
  EXPECT_EQ(parse_retry_after("Tue, 14 Nov 2023 22:14:00 GMT", now), seconds(40));
  EXPECT_EQ(parse_retry_after("Tue, 14 Nov 2023 22:13:00 GMT", now), seconds(0)) << "past";
  for (const char* bad :
       {"", "soon", "1.5", "7s", "Tue, 14 Nov 2023", "99999999999999999999999s"}) {
    EXPECT_EQ(parse_retry_after(bad, now), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace agentd::providers
