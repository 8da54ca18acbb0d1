// Files of a hostile program, saved where a person works.
#include "agentd/cli/save.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace agentd::cli {
namespace {

TEST(SafeNames, AreOneVisibleComponent) {
  EXPECT_EQ(safe_name("plot.png"), "plot.png");
  EXPECT_EQ(safe_name("a/b/plot.png"), "plot.png");
  EXPECT_EQ(safe_name("../../etc/passwd"), "passwd");
  EXPECT_EQ(safe_name(".bashrc"), "bashrc");
  EXPECT_EQ(safe_name("-rf"), "rf");
  EXPECT_EQ(safe_name("--.-x"), "x");
  EXPECT_EQ(safe_name("\u00FCber \u6771.csv"), "\u00FCber \u6771.csv");
  for (const char* none : {"", ".", "..", "a/", "/", "...", "---"}) {
    EXPECT_EQ(safe_name(none), "file") << none;
  }
}

TEST(SafeNames, HoldNoControlNoBackslashAndNoDeceptiveCharacter) {
  const std::string name = safe_name("a\n\x1b]0;x\x07\\b\xE2\x80\xAEgnp.exe\xff");
  for (const char c : name) {
    EXPECT_TRUE(static_cast<unsigned char>(c) >= ' ' && c != '\\' && c != '\x7F') << name;
  }
  EXPECT_EQ(name.find("\xE2\x80\xAE"), std::string::npos);
}

TEST(SafeNames, HaveALimitBetweenCharacters) {
  EXPECT_EQ(safe_name(std::string(200, 'x')).size(), 200U);
  EXPECT_EQ(safe_name(std::string(201, 'x')).size(), 200U);
  EXPECT_EQ(safe_name(std::string(199, 'x') + "\u00FC"), std::string(199, 'x'));
}

TEST(SavedFiles, ReplaceNothingAndFollowNoLink) {
  const sbx::test::TemporaryDirectory directory;
  const std::string outside = directory.write("outside", "precious");
  const std::string target = directory.path() + "/out";
  const auto first = save_file(target, "plot.png", "1");
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_EQ(*first, target + "/plot.png");
  EXPECT_EQ(*save_file(target, "x/plot.png", "2"), target + "/plot-2.png");
  ASSERT_EQ(::symlink(outside.c_str(), (target + "/link.txt").c_str()), 0);
  ASSERT_EQ(::symlink((target + "/new").c_str(), (target + "/dangling").c_str()), 0);
  EXPECT_EQ(*save_file(target, "link.txt", "3"), target + "/link-2.txt");
  EXPECT_EQ(*save_file(target, "dangling", "4"), target + "/dangling-2");
  EXPECT_EQ(sbx::test::read_text(outside), "precious");
  EXPECT_EQ(sbx::test::read_text(*first), "1");
  EXPECT_NE(::access((target + "/new").c_str(), F_OK), 0);
}

TEST(SavedFiles, ADirectoryThatCannotBeMadeOrWrittenIsSaidWithAFix) {
  const sbx::test::TemporaryDirectory directory;
  const std::string file = directory.write("file", "");
  for (const std::string& place : {file, file + "/below", directory.path() + "/no/such"}) {
    const auto saved = save_file(place, "a", "x");
    ASSERT_FALSE(saved) << place;
    EXPECT_NE(saved.error().fix.find("--save"), std::string::npos);
  }
}

}  // namespace
}  // namespace agentd::cli
