#include "runtime/base/own_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(NameScarcity, OtherErrorsStayAsTheyAre) {
  EXPECT_EQ(name_scarcity(internal_error(EIO)).code, ErrorCode::kInternal);
  const Error named = name_scarcity(host_lacks("call", EMFILE, "", "its own fix"));
  EXPECT_EQ(named.fix, "its own fix");
}

}  // namespace
}  // namespace sbx
