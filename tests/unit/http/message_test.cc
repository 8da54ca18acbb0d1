// Header fields and whole responses.
#include "http/message.h"

namespace sbx::http {
namespace {

TEST(Headers, NamesCompareWithoutCase) {
  const Headers headers{{"Content-Type", "a"}, {"content-type", "b"}};
  EXPECT_EQ(headers.find("CONTENT-TYPE"), "a");
  EXPECT_EQ(headers.count("Content-type"), 2U);
  EXPECT_FALSE(headers.find("Content"));
}

TEST(Headers, SetReplacesEveryFieldOfTheName) {
  Headers headers{{"A", "1"}, {"a", "2"}, {"B", "3"}};
  headers.set("a", "4");
  EXPECT_EQ(headers.count("A"), 1U);
  EXPECT_EQ(headers.find("A"), "4");
  EXPECT_EQ(headers.find("b"), "3");
}

TEST(Headers, TokensAreFoundInListsOverSeveralFields) {
  const Headers headers{{"Expect", "x , 100-Continue"}, {"Expect", "y"}};
  EXPECT_TRUE(headers.has_token("expect", "100-continue"));
  EXPECT_TRUE(headers.has_token("Expect", "y"));
  EXPECT_FALSE(headers.has_token("Expect", "100"));
  EXPECT_FALSE(headers.has_token("Other", "y"));
}

TEST(Response, EveryStatusThatIsUsedHasAPhrase) {
  EXPECT_EQ(reason_phrase(200), "OK");
  EXPECT_EQ(reason_phrase(413), "Content Too Large");
  EXPECT_EQ(reason_phrase(299), "");
}

}  // namespace
}  // namespace sbx::http
