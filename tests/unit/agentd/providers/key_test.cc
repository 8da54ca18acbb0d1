#include "agentd/providers/key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/process.h"

namespace agentd::providers {
namespace {

constexpr char kKeyText[] = "sk-not-a-real-key-0123456789";

class KeyTest : public ::testing::Test {
 protected:
  std::string file(const std::string& content, mode_t mode = 0600) {
    const std::string path = directory_.write("key", content);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  // What is wrong, which never quotes the key.
  static std::string error_of(const KeySource& source) {
    const auto key = load_key(source);
    if (key) return "none";
    const std::string text = to_string(key.error()) + key.error().fix;
    EXPECT_EQ(text.find("not-a-real-key"), std::string::npos) << text;
    return text;
  }
  sbx::test::TemporaryDirectory directory_;
};

TEST_F(KeyTest, ComesFromAFileWithoutItsLineEnd) {
  const auto key = load_key({.file = file(std::string(kKeyText) + "\n")});
  ASSERT_TRUE(key) << to_string(key.error());
  EXPECT_EQ(key->reveal(), kKeyText);
}

TEST_F(KeyTest, AFileThatOthersMayReadIsRefused) {
  EXPECT_NE(error_of({.file = file(kKeyText, 0604)}).find("chmod 600"), std::string::npos);
  EXPECT_EQ(error_of({.file = file(kKeyText, 0640)}), "none") << "a group is the operator's choice";
}

TEST_F(KeyTest, WhatIsNoKeyIsRefusedWithoutBeingQuoted) {
  for (const std::string& text : {std::string(), std::string("\n"), std::string(kKeyText) + " x",
                                  std::string(kKeyText) + "\nmore\n", std::string(5000, 'k')}) {
    EXPECT_NE(error_of({.file = file(text)}), "none") << text.size();
  }
  EXPECT_NE(error_of({.file = directory_.path() + "/none"}), "none");
  EXPECT_NE(error_of({.file = directory_.path()}), "none");
}

TEST_F(KeyTest, ComesFromASystemdCredential) {
  (void)file(kKeyText, 0400);
  EXPECT_NE(error_of({.credential = "key"}).find("CREDENTIALS_DIRECTORY"), std::string::npos);
  ASSERT_EQ(::setenv("CREDENTIALS_DIRECTORY", directory_.path().c_str(), 1), 0);
  EXPECT_EQ(load_key({.credential = "key"})->reveal(), kKeyText);
  ASSERT_EQ(::unsetenv("CREDENTIALS_DIRECTORY"), 0);
}

TEST_F(KeyTest, ComesFromAVariableWhichIsRemoved) {
  EXPECT_NE(error_of({.environment = "AGENTD_TEST_KEY"}), "none");
  ASSERT_EQ(::setenv("AGENTD_TEST_KEY", kKeyText, 1), 0);
  EXPECT_EQ(load_key({.environment = "AGENTD_TEST_KEY"})->reveal(), kKeyText);
  EXPECT_EQ(::getenv("AGENTD_TEST_KEY"), nullptr);
}

TEST_F(KeyTest, NoSourceIsNoKey) {
  EXPECT_TRUE(load_key({})->empty());
}

}  // namespace
}  // namespace agentd::providers
