// Request targets, as clients may write them.
#include "http/uri.h"

namespace sbx::http {
namespace {

using Segments = std::vector<std::string>;

Segments segments_of(std::string_view text) {
  const auto target = parse_target(text);
  return target ? target->segments : Segments{"(refused)"};
}

TEST(PercentDecode, TakesHexDigitsOfEitherCaseAndRefusesTheRest) {
  EXPECT_EQ(percent_decode("a%2Fb%2f%c3%A9+"), "a/b/\xC3\xA9+");
  EXPECT_EQ(percent_decode(""), "");
  for (const char* bad : {"%", "%4", "%zz", "%4g", "a%", "%%41", "%00", "a%00b"}) {
    EXPECT_FALSE(percent_decode(bad)) << bad;
  }
}

TEST(PercentEncode, EveryByteComesBack) {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string encoded = percent_encode(all);
  EXPECT_EQ(percent_decode(encoded), all);
  EXPECT_EQ(percent_encode("a/b c", "/"), "a/b%20c");
}

TEST(Target, IsSplitBeforeItIsDecodedAndNeverNormalized) {
  EXPECT_EQ(segments_of("/"), (Segments{""}));
  EXPECT_EQ(segments_of("/a/b"), (Segments{"a", "b"}));
  EXPECT_EQ(segments_of("/a//b/"), (Segments{"a", "", "b", ""}));
  EXPECT_EQ(segments_of("/a%2Fb/.."), (Segments{"a/b", ".."}));
  EXPECT_EQ(segments_of("/%2e%2e/x"), (Segments{"..", "x"}));
}

TEST(Target, InAbsoluteFormIsUnderstood) {
  EXPECT_EQ(segments_of("http://sbx/v1/run"), (Segments{"v1", "run"}));
  EXPECT_EQ(segments_of("https://sbx:80/v1?x=1"), (Segments{"v1"}));
  EXPECT_EQ(segments_of("http://sbx"), (Segments{"(refused)"}));
}

TEST(Target, ThatIsNoPathIsRefused) {
  for (const char* bad : {"", "*", "a/b", "/a b", "/a#b", "/a\x7F", "/\x01", "/%", "/a?b=%zz",
                          "ftp://x/y", "/a%00"}) {
    EXPECT_FALSE(parse_target(bad)) << bad;
  }
}

TEST(Query, KeepsOrderRepetitionsAndEmptyValues) {
  const auto target = parse_target("/run?stream=1&&a=%26&a=b=c&flag&=x&plus=a+b?c");
  ASSERT_TRUE(target);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"stream", "1"}, {"a", "&"}, {"a", "b=c"}, {"flag", ""}, {"", "x"}, {"plus", "a+b?c"}};
  EXPECT_EQ(target->query.all(), expected);
  EXPECT_EQ(target->query.find("a"), "&");
  EXPECT_EQ(target->query.find("flag"), "");
  EXPECT_FALSE(target->query.find("none"));
  EXPECT_EQ(target->path, "/run");
}

}  // namespace
}  // namespace sbx::http
