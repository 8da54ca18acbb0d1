#include "runtime/cgroup/group_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/cgroup/hierarchy.h"
#include "runtime/cgroup/v1.h"
#include "runtime/cgroup/v2_base.h"

namespace sbx::cgroup {
namespace {

TEST(FindKey, MatchesTheWholeKeyOnly) {
  constexpr const char* kEvents = "low 0\noom 3\noom_kill 2\noom_group_kill 1\n";
  EXPECT_EQ(find_key(kEvents, "oom_kill"), 2U);
  EXPECT_EQ(find_key(kEvents, "oom"), 3U);
  EXPECT_EQ(find_key(kEvents, "kill"), std::nullopt);
  EXPECT_EQ(find_key("populated 0\nfrozen 0\n", "populated"), 0U);
  EXPECT_EQ(find_key("populated", "populated"), std::nullopt);
  EXPECT_EQ(find_key("max max\n", "max"), std::nullopt);
}

TEST(ParseNumber, TakesOneNumberAndNothingElse) {
  EXPECT_EQ(parse_number("18446744073709551615\n"), 18446744073709551615U);
  EXPECT_EQ(parse_number("18446744073709551616\n"), std::nullopt);
  EXPECT_EQ(parse_number("max\n"), std::nullopt);
  EXPECT_EQ(parse_number("-1\n"), std::nullopt);
  EXPECT_EQ(parse_number("1 2"), std::nullopt);
}

// A directory tree that has every file a driver writes, but is no cgroup file system.
class DecoyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/dev/shm/test-sbx-decoy-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    for (const char* file : {"cgroup.procs", "cgroup.controllers", "cgroup.subtree_control",
                             "memory.max", "memory.limit_in_bytes", "pids.max"}) {
      std::ofstream(path_ + "/" + file) << "cpu memory pids\n";
    }
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::string path_;
};

TEST_F(DecoyTest, IsRefusedAsAGroupOfEitherVersion) {
  EXPECT_FALSE(GroupDir::open(path_, CGROUP_SUPER_MAGIC));
  EXPECT_FALSE(GroupDir::open(path_, CGROUP2_SUPER_MAGIC));
  // Control: with the magic it does have, it opens and takes writes.
  const auto opened = GroupDir::open(path_, TMPFS_MAGIC);
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->write("memory.max", "1"));
}

TEST_F(DecoyTest, IsRefusedByTheDriversAndNothingIsMadeInIt) {
  const Hierarchies decoys{{{path_, "/", {"memory", "pids", "cpu", "cpuacct"}}},
                           {{path_, "/", {}}}};
  const auto driver = make_v1_driver(decoys, {});
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kHost);
  EXPECT_EQ(find_usable_v2(decoys), nullptr);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/sbx"));
}

TEST_F(DecoyTest, LinksAndParentsAreNotFollowed) {
  const auto opened = GroupDir::open(path_, TMPFS_MAGIC);
  ASSERT_TRUE(opened);
  ASSERT_EQ(::symlink("/etc/passwd", (path_ + "/link").c_str()), 0);
  ASSERT_EQ(::symlink("/tmp", (path_ + "/directory").c_str()), 0);
  EXPECT_FALSE(opened->open_file("link", O_RDONLY));
  EXPECT_FALSE(opened->open_file("../x", O_RDONLY));
  EXPECT_FALSE(opened->open_child("directory"));
  EXPECT_FALSE(opened->open_child(".."));
}

}  // namespace
}  // namespace sbx::cgroup
