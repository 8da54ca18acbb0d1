#include "runtime/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sbx::log {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Log, ALineIsOneJsonObject) {
  EXPECT_EQ(line(1714564800123, Level::kInfo, "run ended",
                 {{"run", "ab"}, {"count", std::int64_t{-3}}, {"seconds", 1.5}, {"ok", true}}),
            R"({"time":"2024-05-01T12:00:00.123Z","level":"info","event":"run ended",)"
            R"("run":"ab","count":-3,"seconds":1.5,"ok":true})");
}

TEST(Log, TimesHaveAllTheirDigits) {
  EXPECT_EQ(utc_time(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(utc_time(1709258645007), "2024-03-01T02:04:05.007Z");
  EXPECT_EQ(utc_time(-1), "1969-12-31T23:59:59.999Z");
}

TEST(Log, BytesThatAreNotPrintableAreEscaped) {
  const std::string text = line(0, Level::kError, "x", {{"name", "a\"\\\n\x1b\xff"}});
  EXPECT_THAT(text, EndsWith(R"("name":"a\"\\\u000a\u001b\u00ff"})"));
}

TEST(Log, ALongFieldIsLeftOutAndSaidToBe) {
  const std::string long_text(kMaxLine, 'x');
  const std::string text = line(0, Level::kInfo, "x", {{"a", "1"}, {"b", long_text}, {"c", "2"}});
  EXPECT_LT(text.size(), kMaxLine);
  EXPECT_THAT(text, HasSubstr(R"("a":"1")"));
  EXPECT_THAT(text, Not(HasSubstr(R"("b")")));
  EXPECT_THAT(text, EndsWith(R"(,"cut":true})"));
}

TEST(Log, LevelsHaveNames) {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarning, Level::kError}) {
    EXPECT_EQ(level_from_name(level_name(level)), level);
  }
  EXPECT_EQ(level_from_name("loud"), std::nullopt);
}

}  // namespace
}  // namespace sbx::log
