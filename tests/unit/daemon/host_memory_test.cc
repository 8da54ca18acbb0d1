#include "runtime/daemon/host_memory.h"

#include <gtest/gtest.h>
#include <sys/sysinfo.h>

namespace sbx::daemon {
namespace {

TEST(HostMemory, IsThereAndNotMoreThanTheMachineHas) {
  struct sysinfo info{};
  ASSERT_EQ(::sysinfo(&info), 0);
  EXPECT_GT(usable_memory(), 0U);
  EXPECT_LE(usable_memory(), std::uint64_t{info.totalram} * info.mem_unit);
}

TEST(HostMemory, ABudgetIsASizeOrAShare) {
  EXPECT_EQ(budget_bytes({80, 0}, 1000), 800U);
  EXPECT_EQ(budget_bytes({80, 4096}, 1000), 4096U);
}

TEST(HostMemory, TheGroupOfAControllerIsFoundInItsLine) {
  const std::string text =
      "12:pids:/p\n4:cpu,cpuacct:/c\n3:memory:/m/n:x\n1:name=systemd:/s\n0::/u\n";
  EXPECT_EQ(parse_v1_group(text, "memory"), "/m/n:x");
  EXPECT_EQ(parse_v1_group(text, "cpuacct"), "/c");
  EXPECT_EQ(parse_v1_group(text, "acct"), "");
  EXPECT_EQ(parse_v1_group("rubbish", "memory"), "");
}

}  // namespace
}  // namespace sbx::daemon
