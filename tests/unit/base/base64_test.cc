#include "runtime/base/base64.h"

#include <gtest/gtest.h>

namespace sbx {
namespace {

TEST(Base64, GivesTheExamplesOfItsRfcBothWays) {
  const std::pair<const char*, const char*> examples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"},
                                                          {"\xFF\xFE\xFD\xFC", "//79/A=="}};
  for (const auto& [bytes, text] : examples) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64, EveryByteComesBackWhateverItsPlace) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (std::size_t skip = 0; skip < 3; ++skip) {
    const std::string part = bytes.substr(skip);
    EXPECT_EQ(decode_base64(encode_base64(part)), part);
  }
}

TEST(Base64, TextThatIsNotCanonicalIsRefused) {
  for (const char* text : {"Zg", "Zg=", "Z===", "Zm9v\n", " Zm9v", "Zm9v====", "Zg==Zg==", "Zh==",
                           "Zm9=", "Zm-_", "====", "=", "Zm9\xc3"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sbx
