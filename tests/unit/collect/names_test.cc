// Names and their normalisation: what turns hostile bytes into something to show.
#include "runtime/collect/names.h"

#include <gtest/gtest.h>

#include "runtime/collect/normalize.h"
#include "tests/support/rendered_path.h"

namespace sbx::collect {
namespace {

TEST(RenderPath, LeavesGoodNamesAloneAlsoWithBackslashes) {
  for (const char* name : {"a.txt", "d/\xC3\xA9.png", "C:\\dir\\x", "\\", "a\nb", "\\xg0"}) {
    EXPECT_EQ(render_path(name), name);
  }
}

TEST(RenderPath, WritesBadBytesAsEscapes) {
  EXPECT_EQ(render_path("a\xFF/b\x80"), "a\\xff/b\\x80");
  EXPECT_EQ(render_path("\xE2\x82"), "\\xe2\\x82") << "cut short";
  EXPECT_EQ(render_path("\xC0\xAF"), "\\xc0\\xaf") << "overlong slash";
  EXPECT_EQ(render_path("\xED\xA0\x80"), "\\xed\\xa0\\x80") << "surrogate";
}

TEST(RenderPath, IsUnambiguous) {
  const std::string fake = "\\xff";
  EXPECT_EQ(render_path(fake), "\\x5cxff");
  EXPECT_NE(render_path(fake), render_path("\xFF"));
  for (const std::string& raw : {fake, std::string("\xFF"), std::string("\\x\xFF"),
                                 std::string("\\\\x41"), std::string("\\x5cx41")}) {
    EXPECT_EQ(test::unrender_path(render_path(raw)), raw);
  }
}

TEST(PlainRelativePath, RefusesWhatCouldLeaveTheTree) {
  for (const char* good : {"a", "a/b", "...", "-rf", "a b"}) {
    EXPECT_TRUE(is_plain_relative_path(good)) << good;
  }
  for (const char* bad : {"", "/", "/a", "a/", "a//b", ".", "..", "a/.", "a/../b"}) {
    EXPECT_FALSE(is_plain_relative_path(bad)) << bad;
  }
  EXPECT_FALSE(is_plain_relative_path(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_plain_relative_path(std::string(kMaxPathBytes, 'a')));
  EXPECT_FALSE(is_plain_relative_path(std::string(kMaxPathBytes + 1, 'a')));
}

TEST(MediaType, GoesByTheExtensionInAnyLetterCase) {
  EXPECT_EQ(media_type("a/b.CSV"), "text/csv");
  EXPECT_EQ(media_type("plot.png"), "image/png");
  EXPECT_EQ(media_type("x.tar.gz"), "application/gzip");
  for (const char* name : {"noext", ".png", "dir.png/file", "a.", "a.unknownextension", ""}) {
    EXPECT_EQ(media_type(name), "application/octet-stream") << name;
  }
}

TEST(CanonicalKey, IsEqualForTextsThatAreEqualAfterNfc) {
  const std::pair<const char*, const char*> kEqual[] = {
      {"\xC3\xA9", "e\xCC\x81"},              // é
      {"\xE2\x84\xAB", "\xC3\x85"},           // ANGSTROM SIGN, A WITH RING (singleton)
      {"\xE1\xB9\xA9", "s\xCC\x87\xCC\xA3"},  // ṩ, marks in the other order
      {"\xE1\xBB\x99", "o\xCC\xA3\xCC\x82"},  // ộ: two steps
      {"\xEA\xB0\x81", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"},  // Hangul LVT
      {"\xEA\xB0\x80", "\xE1\x84\x80\xE1\x85\xA1"},              // Hangul LV
      {"\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC"},  // composition exclusion: Devanagari QA
  };
  for (const auto& [a, b] : kEqual) {
    EXPECT_NE(std::string(a), b);
    EXPECT_EQ(canonical_key(a), canonical_key(b)) << a;
  }
}

TEST(CanonicalKey, DiffersForTextsThatOnlyLookAlike) {
  EXPECT_NE(canonical_key("\xEF\xAC\x81"), canonical_key("fi")) << "compatibility is not canonical";
  EXPECT_NE(canonical_key("a"), canonical_key("A"));
  EXPECT_NE(canonical_key("a\xCC\x81\xCC\x80"), canonical_key("a\xCC\x80\xCC\x81"))
      << "marks of one class keep their order";
  EXPECT_NE(canonical_key("\xFF"), canonical_key("\xFE"));
}

}  // namespace
}  // namespace sbx::collect
