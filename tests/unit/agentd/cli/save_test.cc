// Files of a hostile program, saved where a person works.
#include "agentd/cli/save.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

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

TEST(SafeComponents, KeepTheDirectoriesAndNothingThatLeadsElsewhere) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(safe_components("plot.png"), Names{"plot.png"});
  EXPECT_EQ(safe_components("a/c/data.csv"), (Names{"a", "c", "data.csv"}));
  EXPECT_EQ(safe_components("../../etc/passwd"), (Names{"etc", "passwd"}));
  EXPECT_EQ(safe_components("/etc//./passwd"), (Names{"etc", "passwd"}));
  EXPECT_EQ(safe_components(".ssh/-rf/x"), (Names{"ssh", "rf", "x"}));
  EXPECT_EQ(safe_components("a/.."), (Names{"a", "file"}));
  EXPECT_EQ(safe_components(""), Names{"file"});
  EXPECT_EQ(safe_components("a\x1b/b").front().find('\x1b'), std::string::npos);
}

TEST(SafeComponents, HaveALimit) {
  std::string deep;
  for (int i = 0; i < 63; ++i) deep += "d/";
  EXPECT_EQ(safe_components(deep + "f").size(), 64U);
  EXPECT_EQ(safe_components(deep + "d/f"), std::vector<std::string>{"f"});
}

class SavedFiles : public ::testing::Test {
 protected:
  // Where it was saved below the target, or why not.
  std::string save(const std::string& name, const std::string& content) {
    const auto directory = SaveDirectory::open(target_);
    if (!directory) return to_string(directory.error());
    const auto path = directory->save(name, content);
    if (!path) return to_string(path.error());
    EXPECT_EQ(sbx::test::read_text(*path), content);
    return path->substr(target_.size() + 1);
  }
  void link(const std::string& to, const std::string& name) {
    ASSERT_EQ(::symlink(to.c_str(), (target_ + "/" + name).c_str()), 0);
  }
  sbx::test::TemporaryDirectory directory_;
  std::string target_ = directory_.path() + "/out";
};

TEST_F(SavedFiles, ReplaceNothingAndFollowNoLink) {
  const std::string outside = directory_.write("outside", "precious");
  EXPECT_EQ(save("plot.png", "1"), "plot.png");
  EXPECT_EQ(save("plot.png", "2"), "plot-2.png");
  link(outside, "link.txt");
  link(target_ + "/new", "dangling");
  EXPECT_EQ(save("link.txt", "3"), "link-2.txt");
  EXPECT_EQ(save("dangling", "4"), "dangling-2");
  EXPECT_EQ(sbx::test::read_text(outside), "precious");
  EXPECT_EQ(sbx::test::read_text(target_ + "/plot.png"), "1");
  EXPECT_NE(::access((target_ + "/new").c_str(), F_OK), 0);
}

TEST_F(SavedFiles, KeepTheirDirectoriesWhichAreNeverLinksOrFiles) {
  EXPECT_EQ(save("a/c/data.csv", "1"), "a/c/data.csv");
  EXPECT_EQ(save("a/data.csv", "2"), "a/data.csv");
  EXPECT_EQ(save("b/data.csv", "3"), "b/data.csv");
  EXPECT_EQ(save("data.csv", "4"), "data.csv");
  EXPECT_EQ(save("a/c/data.csv", "5"), "a/c/data-2.csv");
  EXPECT_EQ(save("data.csv/x", "6"), "data-2.csv/x") << "a file is in the way";
  const std::string elsewhere = directory_.path() + "/elsewhere";
  ASSERT_EQ(::mkdir(elsewhere.c_str(), 0700), 0);
  link(elsewhere, "linked");
  link(elsewhere + "/none", "dangling");
  EXPECT_EQ(save("linked/x", "7"), "linked-2/x");
  EXPECT_EQ(save("dangling/x", "8"), "dangling-2/x");
  EXPECT_EQ(save("../elsewhere/x", "9"), "elsewhere/x");
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
}

TEST_F(SavedFiles, GoThroughALinkThatTheCallerNamedAndIntoDirectoriesThatAreMade) {
  const std::string real = directory_.path() + "/real";
  ASSERT_EQ(::mkdir(real.c_str(), 0700), 0);
  ASSERT_EQ(::symlink(real.c_str(), target_.c_str()), 0);
  EXPECT_TRUE(check_directory(target_));
  EXPECT_EQ(save("x", "1"), "x");
  target_ = directory_.path() + "/new/deep/dir";
  EXPECT_TRUE(check_directory(target_));
  EXPECT_TRUE(check_directory(target_ + "/"));
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/new")) << "a check makes nothing";
  EXPECT_EQ(save("x", "2"), "x");
}

TEST_F(SavedFiles, ADirectoryThatCannotBeMadeOrWrittenIsSaidWithAFixBeforehand) {
  const std::string file = directory_.write("file", "");
  const std::string nowhere = directory_.path() + "/nowhere";
  ASSERT_EQ(::symlink("/none/at/all", nowhere.c_str()), 0);
  for (const std::string& place :
       {file, file + "/below", nowhere, nowhere + "/below", std::string("/proc/none/such")}) {
    const auto checked = check_directory(place);
    const bool is_proc = place.starts_with("/proc");  // root may write there, as far as it says
    if (!is_proc) {
      ASSERT_FALSE(checked) << place;
      EXPECT_EQ(checked.error().code, sbx::ErrorCode::kInvalid);
      EXPECT_NE(checked.error().detail.find(place), std::string::npos) << checked.error().detail;
      EXPECT_NE(checked.error().fix.find("--save"), std::string::npos);
    }
    const auto opened = SaveDirectory::open(place);
    ASSERT_FALSE(opened) << place;
    EXPECT_NE(opened.error().fix.find("--save"), std::string::npos);
  }
}

}  // namespace
}  // namespace agentd::cli
