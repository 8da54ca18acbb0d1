#include "runtime/cgroup/records.h"

#include <gtest/gtest.h>

#include "runtime/cgroup/v2_base.h"

namespace sbx::cgroup {
namespace {

TEST(CheckRecord, AcceptsOneSafeComponentUpToTheLimit) {
  EXPECT_TRUE(check_record("4f2a-17_x.1"));
  EXPECT_TRUE(check_record(std::string(kMaxRecord, 'a')));
}

TEST(CheckRecord, RefusesWhatCouldNameAnotherGroup) {
  for (const char* record :
       {"", ".", "..", ".hidden", "a/b", "a b", "a\n", "supervisor", "x.spawner"}) {
    EXPECT_FALSE(check_record(record)) << record;
  }
  EXPECT_FALSE(check_record(std::string(kMaxRecord + 1, 'a')));
}

TEST(RecordOf, KnowsTheSpawnersLeafAndLeavesTheSupervisorAlone) {
  EXPECT_EQ(record_of("abc"), "abc");
  EXPECT_EQ(record_of("abc.spawner"), "abc");
  EXPECT_EQ(record_of("supervisor"), "");
}

TEST(HasAllControllers, ComparesWholeWords) {
  EXPECT_TRUE(has_all_controllers("cpuset cpu io memory hugetlb pids rdma misc\n"));
  EXPECT_TRUE(has_all_controllers("cpu memory pids"));
  EXPECT_FALSE(has_all_controllers("cpuset memory pids\n"));
  EXPECT_FALSE(has_all_controllers("\n"));
}

}  // namespace
}  // namespace sbx::cgroup
