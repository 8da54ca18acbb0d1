#include <gtest/gtest.h>
#include <linux/audit.h>

#include "runtime/policy/seccomp.h"

namespace sbx::policy {
namespace {

#if defined(__x86_64__)

TEST(SyscallName, OfOurOwnAbiIsPlain) {
  EXPECT_EQ(syscall_name(AUDIT_ARCH_X86_64, 0), "read");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_X86_64, 165), "mount");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_X86_64, 435), "clone3");
}

TEST(SyscallName, OfAForeignAbiHasItsNameInFront) {
  EXPECT_EQ(syscall_name(AUDIT_ARCH_X86_64, 0x40000000 | 165), "x32:mount");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_X86_64, 0x40000000 | 520), "x32:execve");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_X86_64, 0x40000000 | 5000), "x32:syscall_5000");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_I386, 11), "i386:execve");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_I386, 21), "i386:mount");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_AARCH64, 40), "aarch64:mount");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_ARM, 21), "arch_0x40000028:syscall_21");
}

#endif

TEST(SyscallName, OfAnUnknownNumberIsTheNumber) {
#if defined(__x86_64__)
  const std::uint32_t arch = AUDIT_ARCH_X86_64;
#else
  const std::uint32_t arch = AUDIT_ARCH_AARCH64;
#endif
  EXPECT_EQ(syscall_name(arch, 511), "syscall_511");
  EXPECT_EQ(syscall_name(arch, 600), "syscall_600");
  EXPECT_EQ(syscall_name(arch, 0xffffffff), "syscall_4294967295");
}

}  // namespace
}  // namespace sbx::policy
