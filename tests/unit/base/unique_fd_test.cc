// UniqueFd and ScopeExit: what ends with a scope, and what does not.
#include "runtime/base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "runtime/base/scope_exit.h"

namespace sbx {
namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}
UniqueFd open_null() {
  return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

TEST(UniqueFd, ClosesAtTheEndOfItsScope) {
  int number = -1;
  {
    const UniqueFd fd = open_null();
    number = fd.get();
    ASSERT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, AMovedOneOwnsNothing) {
  UniqueFd first = open_null();
  const int number = first.get();
  UniqueFd second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(second.get(), number);
  first.reset();
  EXPECT_TRUE(is_open(number));
}

TEST(UniqueFd, AssignmentClosesWhatItHeld) {
  UniqueFd first = open_null();
  UniqueFd second = open_null();
  const int old = first.get();
  const int kept = second.get();
  first = std::move(second);
  EXPECT_FALSE(is_open(old));
  EXPECT_EQ(first.get(), kept);
}

TEST(UniqueFd, AReleasedDescriptorStaysOpen) {
  int number = -1;
  {
    UniqueFd fd = open_null();
    number = fd.release();
    EXPECT_FALSE(fd);
  }
  EXPECT_TRUE(is_open(number));
  (void)::close(number);
}

TEST(ScopeExit, RunsOnceUnlessReleased) {
  int runs = 0;
  {
    const ScopeExit leave([&runs] { ++runs; });
  }
  EXPECT_EQ(runs, 1);
  {
    ScopeExit leave([&runs] { ++runs; });
    leave.release();
  }
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace sbx
