// How long a client may keep us waiting.
#include "http/connection/pace.h"

namespace sbx::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

milliseconds left(const Pace& pace) {
  const Pace::TimePoint now{};
  return std::chrono::duration_cast<milliseconds>(pace.deadline(now) - now);
}

TEST(Pace, AStallLastsForTheGraceAtMost) {
  Pace pace(seconds(10), 1000);
  EXPECT_EQ(left(pace), seconds(10));
  pace.waited(seconds(9));
  EXPECT_EQ(left(pace), seconds(1));
  EXPECT_EQ(pace.used(), seconds(9));
  pace.waited(seconds(1));
  EXPECT_EQ(left(pace), seconds(0));
}

TEST(Pace, BytesAtTheRateGiveBackWhatTheyCost) {
  Pace pace(seconds(10), 1000);
  for (int i = 0; i < 100; ++i) {
    pace.waited(seconds(1));
    pace.moved(1000);
  }
  EXPECT_EQ(left(pace), seconds(10));
}

TEST(Pace, BelowTheRateTheGraceRunsOut) {
  Pace pace(seconds(10), 1000);
  for (int i = 0; i < 20; ++i) {
    pace.waited(seconds(1));
    pace.moved(500);
  }
  EXPECT_EQ(left(pace), seconds(0));
}

TEST(Pace, SpeedEarnsNoLongerStall) {
  Pace pace(seconds(10), 1000);
  pace.moved(std::uint64_t{1} << 62);
  EXPECT_EQ(left(pace), seconds(10));
}

}  // namespace
}  // namespace sbx::http
