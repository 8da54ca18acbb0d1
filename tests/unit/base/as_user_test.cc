#include "runtime/base/as_user.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "runtime/base/unique_fd.h"

namespace sbx {
namespace {

constexpr uid_t kNobody = 65534;

class AsUserTest : public ::testing::Test {
 protected:
  AsUserTest() { EXPECT_NE(::mkdtemp(directory_.data()), nullptr); }
  ~AsUserTest() override { ::rmdir(directory_.c_str()); }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  [[nodiscard]] bool opens() const {
    return static_cast<bool>(UniqueFd(::open(directory_.c_str(), O_RDONLY | O_CLOEXEC)));
  }
  std::string directory_ = "/tmp/sbx-as-user-XXXXXX";
};

TEST_F(AsUserTest, WhatIsShutToTheUserIsShutWhileItLives) {
  EXPECT_TRUE(opens());
  {
    const AsUser nobody(kNobody, kNobody);
    EXPECT_FALSE(opens());
    EXPECT_EQ(errno, EACCES);
    EXPECT_EQ(::geteuid(), 0U);
  }
  EXPECT_TRUE(opens());
}

TEST_F(AsUserTest, GroupsOfOursOpenNothingAndComeBack) {
  const gid_t group = 4711;
  ASSERT_EQ(::setgroups(1, &group), 0);
  ASSERT_EQ(::chown(directory_.c_str(), 0, group), 0);
  ASSERT_EQ(::chmod(directory_.c_str(), 0750), 0);
  {
    const AsUser nobody(kNobody, kNobody);
    EXPECT_FALSE(opens());
  }
  gid_t after = 0;
  EXPECT_EQ(::getgroups(1, &after), 1);
  EXPECT_EQ(after, group);
  ASSERT_EQ(::setgroups(0, nullptr), 0);
}

}  // namespace
}  // namespace sbx
