// The short forms of bench/daemon: many requests, sleepers and kills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/daemon/fixture.h"
#include "tests/daemon/stress.h"

namespace sbx::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DaemonStress : public DaemonTest {};
SBX_AS_BOTH_CALLERS(DaemonStress);

TEST_P(DaemonStress, EveryRequestGetsItsOwnAnswer) {
  start();
  const LoadResult result = load(ground(), {.requests = 600, .connections = 32});
  EXPECT_EQ(result.exact, 600);
  EXPECT_EQ(result.crossed, 0);
  EXPECT_EQ(result.lost, 0);
  EXPECT_THAT(result.complaints, IsEmpty());
  EXPECT_EQ(metric("sbxd_audit_lines_total"), 600);
  const Finished verified =
      run_process(ground().command({"audit", "verify", audit_file()}), ground().options());
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

TEST_P(DaemonStress, ManySleepersAreThereAtOnceAndAllEnd) {
  start("max_running = 100\nmemory_budget = \"2G\"\n");
  const SleepersResult result = sleepers(ground(), 60);
  EXPECT_EQ(result.started, 60);
  EXPECT_THAT(result.complaints, IsEmpty());
}

TEST_P(DaemonStress, NothingOfAKilledDaemonRemainsAndNoFileIsLost) {
  start();
  const KillsResult result = kills(ground(), {.kills = 12, .connections = 6});
  EXPECT_EQ(result.kills, 12);
  EXPECT_EQ(result.runs_left, 0);
  EXPECT_EQ(result.missing_files, 0);
  EXPECT_GT(result.acknowledged_files, 0);
  EXPECT_LT(result.slowest_restart, 5);
  EXPECT_THAT(result.complaints, IsEmpty());
  const Finished verified =
      run_process(ground().command({"audit", "verify", audit_file()}), ground().options());
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

}  // namespace
}  // namespace sbx::test
