// What doctor finds below an image's rootfs/.
#include "runtime/cli/doctor_rootfs.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "tests/support/process.h"

namespace sbx::cli {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Rootfs : public ::testing::Test {
 protected:
  void SetUp() override {
    image_.directory = directory_.path();
    image_.rootfs = directory_.path() + "/rootfs";
    fs::create_directories(path_of("usr/bin"));
    fs::create_directories(path_of("opt"));
    (void)directory_.write("manifest.json", R"({"packages": {"python": {"python": "3"}}})");
    (void)directory_.write("rootfs/opt/python3.11", "");
    set_mode("opt/python3.11", 0755);
    fs::create_symlink("/opt/python3.11", path_of("usr/bin/python3"));  // of the image
    for (const char* const name : {"", "usr", "usr/bin", "opt"}) set_mode(name, 0755);
  }
  [[nodiscard]] std::string path_of(const std::string& name) const {
    return image_.rootfs + "/" + name;
  }
  void set_mode(const std::string& name, mode_t mode) {
    ASSERT_EQ(::chmod(path_of(name).c_str(), mode), 0) << name;
  }
  void expect_broken(const std::string& why, const std::string& fix = plan::kRebuildFix) {
    const auto checked = check_interpreters(image_);
    ASSERT_FALSE(checked) << why;
    EXPECT_THAT(to_string(checked.error()),
                HasSubstr(path_of("usr/bin/python3") + ", which runs "));
    EXPECT_THAT(to_string(checked.error()), HasSubstr(why));
    EXPECT_EQ(checked.error().fix, fix);
  }
  test::TemporaryDirectory directory_;
  plan::Image image_;
};

TEST_F(Rootfs, IsLookedAtAsSomebodyWhoOwnsNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "a run has its caller's id here";
  for (const char* const shut : {"usr", "usr/bin", ""}) {
    set_mode(shut, 0700);
    const auto checked = check_interpreters(image_);
    set_mode(shut, 0755);
    ASSERT_FALSE(checked) << shut;
    EXPECT_EQ(checked.error().fix, plan::kReadableFix) << shut;
  }
  EXPECT_TRUE(check_interpreters(image_));
  EXPECT_EQ(::access("/root", W_OK), 0) << "root again";
}

TEST_F(Rootfs, HasTheInterpretersOfTheLanguagesInItsManifest) {
  EXPECT_TRUE(check_interpreters(image_)) << "of no other language";
  set_mode("opt/python3.11", 0644);
  expect_broken("is no program");
  set_mode("opt/python3.11", 0750);
  expect_broken("cannot be executed by everybody", plan::kReadableFix);
  fs::remove(path_of("opt/python3.11"));
  expect_broken("No such file or directory");
  fs::create_directory(path_of("opt/python3.11"));
  expect_broken("is not a regular file");
  fs::remove(path_of("usr/bin/python3"));
  fs::create_symlink("../../../outside", path_of("usr/bin/python3"));
  (void)directory_.write("outside", "");
  ASSERT_EQ(::chmod((directory_.path() + "/outside").c_str(), 0755), 0);
  expect_broken("No such file or directory");
}

TEST_F(Rootfs, ThatOthersMayWriteAnywhereIsFound) {
  fs::create_symlink("/tmp", path_of("opt/link"));
  EXPECT_TRUE(check_contents(image_)) << "a link is as its directory is";
  for (const char* const name : {"opt", "usr/bin", "opt/python3.11"}) {
    for (const mode_t others : {002U, 020U, 01002U}) {
      set_mode(name, 0755 | others);
      const auto checked = check_contents(image_);
      ASSERT_FALSE(checked) << name;
      EXPECT_THAT(checked.error().detail, HasSubstr(path_of(name) + " can be written by others"));
      EXPECT_THAT(checked.error().fix, HasSubstr("chmod go-w " + path_of(name)));
    }
    set_mode(name, 0755);
  }
  EXPECT_TRUE(check_contents(image_));
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(path_of("opt/python3.11").c_str(), 12345, 12345), 0);
  const auto theirs = check_contents(image_);
  ASSERT_FALSE(theirs);
  EXPECT_THAT(theirs.error().detail, HasSubstr("belongs to uid 12345"));
}

// What only some may read, a run may not: such a part of a library is missed at its import alone.
TEST_F(Rootfs, WhatNotEverybodyMayReadIsFound) {
  for (const auto& [name, mode] :
       {std::pair{"opt", 0750}, {"opt", 0711}, {"usr/bin", 0700}, {"opt/python3.11", 0711}}) {
    set_mode(name, static_cast<mode_t>(mode));
    const auto checked = check_contents(image_);
    ASSERT_FALSE(checked) << name;
    EXPECT_THAT(checked.error().detail, HasSubstr(path_of(name)));
    EXPECT_EQ(checked.error().fix, "chmod -R a+rX " + image_.rootfs);
    set_mode(name, 0755);
  }
  set_mode("", 0711);
  EXPECT_FALSE(check_contents(image_)) << "the top too";
  set_mode("", 0755);
  EXPECT_TRUE(check_contents(image_));
}

}  // namespace
}  // namespace sbx::cli
