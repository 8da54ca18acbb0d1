#include "runtime/base/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/process.h"

namespace sbx {
namespace {

using ::testing::HasSubstr;

class ConfigFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::setenv("XDG_CONFIG_HOME", directory_.path().c_str(), 1), 0);
    ASSERT_EQ(::setenv("HOME", "/nonexistent", 1), 0);
  }

  test::TemporaryDirectory directory_;
};

TEST_F(ConfigFileTest, TheNamedOneIsTakenAndMustBeThere) {
  const std::string path = directory_.write("mine.toml", "a = 1\n");
  const auto found = find_config_file(path, "none-of-these.toml");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->path, path);
  EXPECT_EQ((*found)->text, "a = 1\n");
  const auto missing = find_config_file(path + ".gone", "none-of-these.toml");
  ASSERT_FALSE(missing);
  EXPECT_THAT(to_string(missing.error()), HasSubstr(path + ".gone"));
  EXPECT_THAT(missing.error().fix, HasSubstr("make " + path + ".gone readable"));
}

TEST_F(ConfigFileTest, OneThatIsNoFileIsNotToBeMadeReadable) {
  const auto found = find_config_file("/dev/null", "none-of-these.toml");
  ASSERT_FALSE(found);
  EXPECT_THAT(to_string(found.error()), HasSubstr("/dev/null is not a regular file"));
  EXPECT_EQ(found.error().fix, "name another with --config");
}

TEST_F(ConfigFileTest, WithoutANameTheUsersOwnIsLookedForAndMayBeAbsent) {
  auto found = find_config_file("", "none-of-these.toml");
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
  std::filesystem::create_directory(directory_.path() + "/sbx");
  const std::string path = directory_.write("sbx/none-of-these.toml", "b = 2\n");
  found = find_config_file("", "none-of-these.toml");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->path, path);
  // A relative value names no place.
  ASSERT_EQ(::setenv("XDG_CONFIG_HOME", "relative", 1), 0);
  found = find_config_file("", "none-of-these.toml");
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
}

}  // namespace
}  // namespace sbx
