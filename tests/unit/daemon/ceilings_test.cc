#include "runtime/daemon/ceilings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sbx::daemon {
namespace {

using ::testing::ElementsAre;

TEST(Ceilings, BindWhatIsSetAndNothingElse) {
  Ceilings ceilings;
  ASSERT_TRUE(ceilings.set("memory", "64M"));
  policy::Limits limits;
  EXPECT_TRUE(ceilings.is_above(limits, "memory"));
  EXPECT_FALSE(ceilings.is_above(limits, "pids"));
  ceilings.apply(limits);
  EXPECT_EQ(limits.memory, 64 * policy::kMiB);
  EXPECT_EQ(limits.pids, policy::Limits{}.pids);
}

TEST(Ceilings, NoCpuTimeLimitIsLoweredToTheCeiling) {
  Ceilings ceilings;
  ASSERT_TRUE(ceilings.set("cpu_seconds", "5"));
  policy::Limits limits;
  ceilings.apply(limits);
  EXPECT_EQ(limits.cpu_seconds, std::chrono::milliseconds(5000));
}

TEST(Ceilings, RefuseWhatIsNoLimitOrNoValue) {
  Ceilings ceilings;
  EXPECT_FALSE(ceilings.set("ram", "1"));
  EXPECT_FALSE(ceilings.set("memory", "x"));
  EXPECT_TRUE(ceilings.names().empty());
}

TEST(Ceilings, OfTheDefaultKeepTheDaemonSmallAndTheNetworkOff) {
  EXPECT_THAT(default_ceilings().names(),
              ElementsAre("wall_seconds", "pids", "work", "work_inodes", "stdout_bytes",
                          "stderr_bytes", "files", "file_bytes", "files_bytes", "network"));
  EXPECT_EQ(default_ceilings().text("network"), "none");
}

TEST(Ceilings, InEffectAreTheLowestOfAllWhoHaveASay) {
  Ceilings configured;
  ASSERT_TRUE(configured.set("pids", "100"));
  policy::RuntimeConfig runtime;
  runtime.max_memory = 512 * policy::kMiB;
  runtime.max_pids = 200;
  runtime.max_wall_seconds = 60;
  const Ceilings effective =
      effective_ceilings(configured, runtime, {.memory = 1024 * policy::kMiB, .cpus = 4});
  EXPECT_EQ(effective.text("memory"), "512M");
  EXPECT_EQ(effective.text("pids"), "100");
  EXPECT_EQ(effective.text("wall_seconds"), "60");
  EXPECT_EQ(effective.text("cpus"), "4");
  runtime.max_memory = 0;
  runtime.max_cpus_milli = 1500;
  const Ceilings host =
      effective_ceilings(configured, runtime, {.memory = 1024 * policy::kMiB, .cpus = 4});
  EXPECT_EQ(host.text("memory"), "1G");
  EXPECT_EQ(host.text("cpus"), "1.5");
}

}  // namespace
}  // namespace sbx::daemon
