// What only the v1 driver has: joining through descriptors, and a prepared subtree for a user.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "runtime/cgroup/hierarchy.h"
#include "tests/unit/cgroup/fixture.h"
#include "tests/unit/cgroup/process.h"

namespace sbx::cgroup::test {
namespace {

using std::chrono::milliseconds;

constexpr uid_t kStranger = 54321;

class V1DriverTest : public DriverTest {
 protected:
  V1DriverTest() : DriverTest("v1") {}
};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// `file` of the group `record`, in the hierarchy of `controller`.
std::string value_of(const char* controller, const std::string& record, const std::string& file) {
  const auto hierarchies = discover();
  const Mount* mount = find_v1(*hierarchies, controller);
  return first_line(mount->path + "/" + test_parent() + "/" + record + "/" + file);
}

TEST_F(V1DriverTest, WritesTheLimits) {
  const auto run = make_run("limits", kDefaultLimits);
  ASSERT_TRUE(run);
  EXPECT_EQ(value_of("memory", "limits", "memory.limit_in_bytes"), "268435456");
  EXPECT_EQ(value_of("pids", "limits", "pids.max"), "64");
  EXPECT_EQ(value_of("cpu", "limits", "cpu.cfs_quota_us"), "50000");
  EXPECT_EQ(value_of("cpu", "limits", "cpu.cfs_period_us"), "100000");
  const std::string memsw = value_of("memory", "limits", "memory.memsw.limit_in_bytes");
  EXPECT_TRUE(memsw.empty() || memsw == "268435456") << memsw;
}

TEST_F(V1DriverTest, GivesDescriptorsToJoinAndNoLeaves) {
  const auto run = make_run("fds", kDefaultLimits);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->init_leaf_fd(), -1);
  EXPECT_EQ(run->payload_leaf_fd(), -1);
  EXPECT_GE(run->join_fds().size(), 3U);
  EXPECT_LE(run->join_fds().size(), kMaxJoinFds);
  EXPECT_FALSE(run->kill());
}

// The OOM event must be seen although the kernel kills one process only and others live on.
TEST_F(V1DriverTest, TellsOfAnOomKillWhileTheMainProcessLives) {
  const auto run = make_run("survivor", {32U << 20, 1000, 16});
  ASSERT_TRUE(run);
  auto parent = Process::start_in(*run, [] {
    if (::fork() == 0) {
      touch_memory(64U << 20);
      ::_exit(0);
    }
    sleep_forever();
  });
  EXPECT_TRUE(wait_for_oom(*run, milliseconds(5000)));
  EXPECT_FALSE(parent.wait(milliseconds(0)));
  parent.kill();
  EXPECT_TRUE(parent.wait(milliseconds(5000)));
  EXPECT_TRUE(run->remove(milliseconds(5000)));
}

void make_user_subtree(const std::string& name) {
  const auto hierarchies = discover();
  for (const char* controller : {"memory", "pids", "cpu", "cpuacct"}) {
    const std::string path = find_v1(*hierarchies, controller)->path + "/" + name;
    // Two controllers may share the hierarchy.
    ASSERT_TRUE(::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) << path;
    ASSERT_EQ(::chown(path.c_str(), kStranger, kStranger), 0) << path;
  }
}

// Runs in a child as the stranger: 0, or the number of the step that failed.
int use_driver_as_stranger(const std::string& parent) {
  if (::setresgid(kStranger, kStranger, kStranger) != 0) return 1;
  if (::setresuid(kStranger, kStranger, kStranger) != 0) return 2;
  DriverOptions options;
  options.parent = parent;
  options.owner_uid = kStranger;
  options.owner_gid = kStranger;
  auto driver = choose_driver(options);
  if (!driver)
    return driver.error().code == ErrorCode::kHost && !driver.error().fix.empty() ? 3 : 4;
  auto run = (*driver)->create("mine", kDefaultLimits);
  if (!run) return 5;
  auto bomb = Process::start_in(**run, [] { ::_exit(count_forks_until_refused(200)); });
  const auto status = bomb.wait(milliseconds(40'000));
  if (!status || WEXITSTATUS(*status) != 63) return 6;
  return (*run)->remove(milliseconds(40'000)) ? 0 : 7;
}

TEST_F(V1DriverTest, AnOrdinaryUserWorksInThePreparedSubtreeAndIsToldTheFixWithoutIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to prepare the subtree";
  const std::string parent = test_parent();
  const auto as_stranger = [&parent] { ::_exit(use_driver_as_stranger(parent)); };
  auto refused = Process::start(as_stranger);
  EXPECT_EQ(WEXITSTATUS(refused.wait(milliseconds(9000)).value_or(-1)), 3);
  const std::string subtree = parent + "-" + std::to_string(kStranger);
  make_user_subtree(subtree);
  auto allowed = Process::start(as_stranger);
  EXPECT_EQ(WEXITSTATUS(allowed.wait(milliseconds(90'000)).value_or(-1)), 0);
  EXPECT_EQ(remove_directories_named(subtree), std::vector<std::string>{});
}

}  // namespace
}  // namespace sbx::cgroup::test
