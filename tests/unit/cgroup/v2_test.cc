// What only the v2 driver has: leaves to clone into, group kill, delegation to another uid.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>

#include "tests/unit/cgroup/fixture.h"
#include "tests/unit/cgroup/process.h"

namespace sbx::cgroup::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience(60'000);  // an emulated guest is slow
constexpr uid_t kOuterRoot = 1879048192;

class V2DriverTest : public DriverTest {
 protected:
  V2DriverTest() : DriverTest("v2") {}
};

// `file` of the group that `directory` is open on.
std::string value_of(int directory, const std::string& file) {
  std::ifstream stream("/proc/self/fd/" + std::to_string(directory) + "/" + file);
  std::string line;
  std::getline(stream, line);
  return line;
}

TEST_F(V2DriverTest, WritesTheLimits) {
  const auto run = make_run("limits", kDefaultLimits);
  ASSERT_TRUE(run);
  const int payload = run->payload_leaf_fd();
  EXPECT_EQ(value_of(payload, "memory.max"), "268435456");
  EXPECT_EQ(value_of(payload, "memory.oom.group"), "1");
  EXPECT_EQ(value_of(payload, "pids.max"), "64");
  EXPECT_EQ(value_of(payload, "../cpu.max"), "50000 100000");
  EXPECT_EQ(value_of(run->init_leaf_fd(), "memory.max"), "max");
  const std::string swap = value_of(payload, "memory.swap.max");
  EXPECT_TRUE(swap.empty() || swap == "0") << swap;
  EXPECT_TRUE(run->join_fds().empty());
}

TEST_F(V2DriverTest, AnOomKillTakesTheWholePayloadAndLeavesInitAlone) {
  const auto run = make_run("group", {32U << 20, 1000, 16});
  ASSERT_TRUE(run);
  const pid_t init = clone_into(run->init_leaf_fd());
  if (init == 0) sleep_forever();
  ASSERT_GT(init, 0);
  auto bystander = Process::start_in(*run, sleep_forever);
  auto hog = Process::start_in(*run, [] { touch_memory(64U << 20); });
  EXPECT_TRUE(wait_for_oom(*run, kPatience));
  EXPECT_TRUE(hog.wait(kPatience));
  EXPECT_TRUE(bystander.wait(kPatience));
  EXPECT_EQ(::waitpid(init, nullptr, WNOHANG), 0);
  EXPECT_TRUE(run->remove(kPatience));
  EXPECT_EQ(::waitpid(init, nullptr, 0), init);
}

bool everything_is_dead(std::string_view, void*) {
  return true;
}

TEST_F(V2DriverTest, SweepLeavesGroupsOfAnotherShapeAlone) {
  const auto run = make_run("beside", kDefaultLimits);
  ASSERT_TRUE(run);
  const std::string base = "/proc/self/fd/" + std::to_string(run->init_leaf_fd()) + "/../../";
  ASSERT_EQ(::mkdir((base + "foreign").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir((base + "foreign/part").c_str(), 0755), 0);
  EXPECT_TRUE(driver_->sweep(everything_is_dead, nullptr));
  EXPECT_EQ(::rmdir((base + "foreign/part").c_str()), 0);
  EXPECT_EQ(::rmdir((base + "foreign").c_str()), 0);
}

TEST_F(V2DriverTest, KillEndsAForkBombAtOnce) {
  const auto run = make_run("bomb", kDefaultLimits);
  ASSERT_TRUE(run);
  auto bomb = Process::start_in(*run, [] {
    for (;;) (void)::fork();
  });
  while (run->usage()->pids_refused < 1) {
    ASSERT_FALSE(bomb.wait(milliseconds(1)));
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(run->kill());
  EXPECT_TRUE(bomb.wait(kPatience));
  EXPECT_TRUE(run->remove(kPatience));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("fork bomb killed and removed in %.1f ms\n", took.count());
}

// A spawner with the outer root's id, in the leaf adopt_spawner made. Exits with clone3's errno.
Process start_spawner(const CgroupRun& run, const UniqueFd& go) {
  const int leaf = run.payload_leaf_fd();
  const int wait_fd = go.get();
  return Process::start([leaf, wait_fd] {
    char byte = 0;
    if (::read(wait_fd, &byte, 1) != 1) ::_exit(200);
    if (::setresgid(kOuterRoot, kOuterRoot, kOuterRoot) != 0) ::_exit(201);
    if (::setresuid(kOuterRoot, kOuterRoot, kOuterRoot) != 0) ::_exit(202);
    const pid_t child = clone_into(leaf);
    if (child == 0) ::_exit(0);
    const int error = errno;
    if (child > 0) (void)::waitpid(child, nullptr, 0);
    ::_exit(child > 0 ? 0 : error);
  });
}

int clone_as_outer_root(Driver& driver, const std::string& record) {
  auto run = driver.create(record, kDefaultLimits);
  int ends[2];
  if (!run || ::pipe2(ends, O_CLOEXEC) != 0) return 203;
  const UniqueFd go(ends[0]);
  const UniqueFd say(ends[1]);
  auto spawner = start_spawner(**run, go);
  if (!driver.adopt_spawner(spawner.pid(), record)) return 204;
  if (::write(say.get(), "x", 1) != 1) return 205;
  const auto status = spawner.wait(kPatience);
  driver.release_spawner(record);
  return status ? WEXITSTATUS(*status) : 206;
}

TEST_F(V2DriverTest, TheOuterRootMayCloneIntoItsRunsAndNobodyElsesMay) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to take another uid";
  // Control first, since the base's cgroup.procs stays given away.
  EXPECT_EQ(clone_as_outer_root(*driver_, "closed"), EACCES);
  const auto delegating = make_driver(kOuterRoot);
  ASSERT_TRUE(delegating);
  EXPECT_EQ(clone_as_outer_root(*delegating, "open"), 0);
}

TEST_F(V2DriverTest, TheLimitsOfADelegatedRunStayOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to take another uid";
  const auto delegating = make_driver(kOuterRoot);
  ASSERT_TRUE(delegating);
  auto run = delegating->create("limits", kDefaultLimits);
  ASSERT_TRUE(run);
  const int leaf = (*run)->payload_leaf_fd();
  auto outer = Process::start([leaf] {
    if (::setresuid(kOuterRoot, kOuterRoot, kOuterRoot) != 0) ::_exit(1);
    for (const char* file : {"memory.max", "pids.max", "memory.oom.group", "../cpu.max"}) {
      if (::openat(leaf, file, O_WRONLY | O_CLOEXEC) >= 0 || errno != EACCES) ::_exit(2);
    }
    ::_exit(::openat(leaf, "cgroup.procs", O_WRONLY | O_CLOEXEC) >= 0 ? 0 : 3);
  });
  EXPECT_EQ(WEXITSTATUS(outer.wait(kPatience).value_or(-1)), 0);
}

}  // namespace
}  // namespace sbx::cgroup::test
