#include "runtime/base/deadline.h"

#include <gtest/gtest.h>

namespace sbx {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Clock::time_point kNow(100h);

TEST(PollTimeout, RoundsUpSoThatTheDeadlineHasPassedAfterIt) {
  EXPECT_EQ(poll_timeout(kNow + 1ns, kNow), 1);
  EXPECT_EQ(poll_timeout(kNow + 5ms, kNow), 5);
  EXPECT_EQ(poll_timeout(kNow + 5001us, kNow), 6);
}

TEST(PollTimeout, IsNothingForWhatHasPassed) {
  EXPECT_EQ(poll_timeout(kNow, kNow), 0);
  EXPECT_EQ(poll_timeout(kNow - 1h, kNow), 0);
  EXPECT_EQ(poll_timeout(Clock::time_point::min() + 200h, kNow), 0);
}

TEST(PollTimeout, IsAnHourAtMostAlsoWithoutADeadline) {
  EXPECT_EQ(poll_timeout(kNow + 1000h, kNow), 3'600'000);
  EXPECT_EQ(poll_timeout(Clock::time_point::max(), kNow), 3'600'000);
}

}  // namespace
}  // namespace sbx
