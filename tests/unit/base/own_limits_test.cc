#include "runtime/base/own_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace sbx {
namespace {

Error internal_error(int sys_errno) {
  errno = sys_errno;
  return sys_error("call");
}

TEST(NameScarcity, WhatIsUsedUpIsTheHostsLackWithAFix) {
  for (const int scarce : {EAGAIN, ENOMEM, EMFILE, ENFILE, ETOOMANYREFS}) {
    const Error error = name_scarcity(internal_error(scarce));
    EXPECT_EQ(error.code, ErrorCode::kHost) << scarce;
    EXPECT_EQ(error.fix, scarcity_fix(scarce));
    EXPECT_NE(error.fix, "") << scarce;
    EXPECT_EQ(error.operation, "call");
    EXPECT_EQ(error.sys_errno, scarce);
  }
}

// In a process of its own, under a hard limit.
template <typename Act>
bool holds_under(__rlimit_resource_t resource, rlim_t most, Act act) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit limit{most, most};
    ::_exit(::setrlimit(resource, &limit) == 0 && act() ? 0 : 1);
  }
  int status = -1;
  (void)::waitpid(pid, &status, 0);
  return status == 0;
}

TEST(NameScarcity, AThreadWithoutRoomForItsStackIsForWantOfMemory) {
  EXPECT_THAT(scarcity_fix(EAGAIN), ::testing::HasSubstr("ulimit -u"));
  EXPECT_TRUE(holds_under(RLIMIT_AS, 1 << 20, [] { return scarcity_fix(EAGAIN) == kMemoryFix; }));
}

TEST(OwnLimits, OfMemoryAndFilesMayBeEnoughForARunAndNotForTheSelftest) {
  const auto only_runs = [] { return check_own_limits() && !check_own_limits(OwnWork::kSelftest); };
  EXPECT_TRUE(holds_under(RLIMIT_NOFILE, 100, only_runs));
  EXPECT_TRUE(holds_under(RLIMIT_DATA, 8 << 20, only_runs));
  EXPECT_TRUE(holds_under(RLIMIT_DATA, 1 << 20, [] { return !check_own_limits(); }));
}

TEST(OwnLimits, ADaemonNeedsMoreMemoryThanARun) {
  const auto only_runs = [] { return check_own_limits() && !check_own_limits(OwnWork::kDaemon); };
  EXPECT_TRUE(holds_under(RLIMIT_DATA, 16 << 20, only_runs));
  EXPECT_TRUE(holds_under(RLIMIT_AS, 32 << 20, only_runs));
}

TEST(NameScarcity, OtherErrorsStayAsTheyAre) {
  EXPECT_EQ(name_scarcity(internal_error(EIO)).code, ErrorCode::kInternal);
  const Error named = name_scarcity(host_lacks("call", EMFILE, "", "its own fix"));
  EXPECT_EQ(named.fix, "its own fix");
}

}  // namespace
}  // namespace sbx
