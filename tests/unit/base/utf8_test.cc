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

TEST(Utf8, WhatIsCutAtABoundaryReadsAsItDid) {
  const auto read = [](std::string_view bytes) {
    std::string text;
    (void)append_replacing(text, bytes);
    return text;
  };
  // Of every kind of byte, each after and before each other: four in a row.
  const std::string kinds = "a\x80\xBF\xC0\xC3\xE0\xE2\xED\xF0\xF4\xFF";
  const std::size_t all = kinds.size() * kinds.size() * kinds.size() * kinds.size();
  for (std::size_t number = 0; number < all; ++number) {
    std::string bytes = "\xE2\x82\xAC";
    for (std::size_t rest = number, i = 0; i < 4; ++i, rest /= kinds.size()) {
      bytes += kinds[rest % kinds.size()];
    }
    for (std::size_t at = 0; at <= bytes.size(); ++at) {
      const std::size_t before = utf8_boundary_before(bytes, at);
      const std::size_t behind = utf8_boundary_behind(bytes, at);
      ASSERT_LE(before, at);
      ASSERT_GE(behind, at);
      ASSERT_LE(behind, bytes.size());
      ASSERT_LE(behind - before, 4U) << "as long as the longest character";
      ASSERT_EQ(before == at, behind == at) << "where it is none, it lies inside of something";
      for (const std::size_t cut : {before, behind}) {
        const std::string_view whole = bytes;
        ASSERT_EQ(read(whole.substr(0, cut)) + read(whole.substr(cut)), read(whole)) << at;
      }
    }
  }
}

TEST(Utf8, ABoundaryIsTheNearestOne) {
  const std::string_view text = "a\xF0\x9D\x84\x9Ez";
  const std::size_t before[] = {0, 1, 1, 1, 1, 5, 6};
  const std::size_t behind[] = {0, 1, 5, 5, 5, 5, 6};
  for (std::size_t at = 0; at <= text.size(); ++at) {
    EXPECT_EQ(utf8_boundary_before(text, at), before[at]);
    EXPECT_EQ(utf8_boundary_behind(text, at), behind[at]);
  }
  const std::string stray(9, '\x80');
  EXPECT_EQ(utf8_boundary_before(stray, 5), 5U) << "bytes of no character are not gone through";
}

}  // namespace
}  // namespace sbx
