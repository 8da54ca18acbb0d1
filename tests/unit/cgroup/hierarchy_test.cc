#include "runtime/cgroup/hierarchy.h"

#include <gtest/gtest.h>

namespace sbx::cgroup {
namespace {

constexpr const char* kHybrid =
    "21 28 0:20 / /proc rw,nosuid shared:12 - proc proc rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
    "41 31 0:38 / /mnt/a\\040b rw,relatime shared:1 master:2 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(ParseMountinfo, FindsControllersAlsoWhereTwoShareAMount) {
  const Hierarchies found = parse_mountinfo(kHybrid);
  ASSERT_EQ(found.v1.size(), 3U);
  ASSERT_NE(find_v1(found, "cpuacct"), nullptr);
  EXPECT_EQ(find_v1(found, "cpuacct")->path, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(find_v1(found, "cpu")->path, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(find_v1(found, "memory")->path, "/sys/fs/cgroup/memory");
  EXPECT_EQ(find_v1(found, "pids"), nullptr);
  EXPECT_EQ(find_v1(found, "name=systemd"), nullptr);
}

TEST(ParseMountinfo, DecodesOctalAndSkipsOptionalFields) {
  const Hierarchies found = parse_mountinfo(kHybrid);
  ASSERT_EQ(found.v2.size(), 1U);
  EXPECT_EQ(found.v2[0].path, "/mnt/a b");
  EXPECT_EQ(found.v2[0].root, "/");
}

TEST(ParseMountinfo, SkipsLinesThatMakeNoSense) {
  const Hierarchies found = parse_mountinfo("\n- cgroup2 x y\n1 2 3 - cgroup2\n1 2 0:1 / /x rw\n");
  EXPECT_TRUE(found.v1.empty());
  EXPECT_TRUE(found.v2.empty());
}

TEST(ParseSelfCgroup, TakesTheV2LineAndNothingElse) {
  EXPECT_EQ(parse_self_cgroup("4:memory:/a\n0::/user.slice/x.scope\n"), "/user.slice/x.scope");
  EXPECT_EQ(parse_self_cgroup("4:memory:/a\n10::/b\n"), "");
}

TEST(GroupDirectory, ResolvesBelowTheMountsRootAndRefusesOutside) {
  const Mount whole{"/sys/fs/cgroup", "/", {}};
  EXPECT_EQ(group_directory(whole, "/"), "/sys/fs/cgroup");
  EXPECT_EQ(group_directory(whole, "/a/b"), "/sys/fs/cgroup/a/b");
  EXPECT_EQ(group_directory(whole, "/../b"), "");
  const Mount part{"/cg", "/box", {}};
  EXPECT_EQ(group_directory(part, "/box/a"), "/cg/a");
  EXPECT_EQ(group_directory(part, "/box"), "/cg");
  EXPECT_EQ(group_directory(part, "/boxes"), "");
  EXPECT_EQ(group_directory(part, "/a"), "");
}

}  // namespace
}  // namespace sbx::cgroup
