// Names, normalisation, escaping, UTF-8, base64: what turns hostile bytes into something to show.
#include "runtime/collect/names.h"

#include <gtest/gtest.h>

#include "runtime/collect/base64.h"
#include "runtime/collect/escape.h"
#include "runtime/collect/normalize.h"
#include "runtime/collect/utf8.h"
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

TEST(EscapeForTerminal, LeavesNothingThatATerminalActsOn) {
  EXPECT_EQ(escape_for_terminal("\x1b[2J\x1b]0;t\x07"), "\\x1b[2J\\x1b]0;t\\x07");
  EXPECT_EQ(escape_for_terminal("a\nb\tc\rd\x7f"), "a\\nb\\tc\\rd\\x7f");
  EXPECT_EQ(escape_for_terminal("\xC2\x9B"
                                "31m"),
            "\\x9b31m")
      << "CSI as C1";
  EXPECT_EQ(escape_for_terminal("\x9B"), "\\x9b") << "the same as a bare byte";
  EXPECT_EQ(escape_for_terminal("\xE2\x80\xAEgpj.exe"), "\\u{202e}gpj.exe")
      << "right-to-left override";
  EXPECT_EQ(escape_for_terminal("\xE2\x81\xA6x"), "\\u{2066}x") << "isolate";
  EXPECT_EQ(escape_for_terminal("\xE2\x80\xA8"), "\\u{2028}") << "line separator";
  EXPECT_EQ(escape_for_terminal(std::string_view("\0", 1)), "\\x00");
}

TEST(EscapeForTerminal, LeavesPlainTextAlone) {
  const std::string text = "caf\xC3\xA9 \xE6\xBC\xA2\xF0\x9F\x98\x80 -rf \\";
  EXPECT_EQ(escape_for_terminal(text), text);
  EXPECT_EQ(escape_for_terminal("a\n\tb\r", Keep::kNewlinesAndTabs), "a\n\tb\\r");
}

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

TEST(Base64, EncodesEveryRemainder) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foo"), "Zm9v");
  EXPECT_EQ(encode_base64("\xFF\xFE\xFD\xFC"), "//79/A==");
}

}  // namespace
}  // namespace sbx::collect
