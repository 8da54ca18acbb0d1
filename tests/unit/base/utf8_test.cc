#include "runtime/base/utf8.h"

#include <gtest/gtest.h>

namespace sbx {
namespace {

TEST(Utf8, ReplacesEachIllFormedPartOnce) {
  const auto replaced = [](std::string_view bytes) {
    std::string text;
    (void)append_replacing(text, bytes);
    return text;
  };
  const std::string kBad = "\xEF\xBF\xBD";
  EXPECT_EQ(replaced("a\xF0\x9F\x98z"), "a" + kBad + "z") << "one truncated sequence";
  EXPECT_EQ(replaced("\xC0\xAF"), kBad + kBad);
  EXPECT_EQ(replaced("\xED\xA0\x80"), kBad + kBad + kBad);
  EXPECT_EQ(replaced("\xF4\x90\x80\x80"), kBad + kBad + kBad + kBad) << "past U+10FFFF";
  EXPECT_EQ(replaced("\xF4\x8F\xBF\xBF"), "\xF4\x8F\xBF\xBF") << "U+10FFFF itself";
}

}  // namespace
}  // namespace sbx
