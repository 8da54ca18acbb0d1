// What both drivers promise, shown with real processes on whichever version this host has.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <string>

#include "tests/unit/cgroup/fixture.h"
#include "tests/unit/cgroup/process.h"

namespace sbx::cgroup::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPatience(60'000);  // an emulated guest is slow

constexpr std::size_t kHog = 64U << 20;

bool is_dead(std::string_view record, void* context) {
  return static_cast<std::set<std::string>*>(context)->contains(std::string(record));
}

TEST_F(DriverTest, SaysWhatItIs) {
  EXPECT_TRUE(driver_->name() == "v1" || driver_->name() == "v2");
  EXPECT_NE(driver_->detail().find("memory pids cpu"), std::string::npos);
}

TEST_F(DriverTest, RefusesARecordThatIsNoPlainName) {
  EXPECT_FALSE(driver_->create("../x", kDefaultLimits));
  EXPECT_FALSE(driver_->create("supervisor", kDefaultLimits));
}

TEST_F(DriverTest, RefusesAGroupThatWasLeftAndDoesNotRemoveIt) {
  const auto run = make_run("twice", kDefaultLimits);
  ASSERT_TRUE(run);
  const auto again = driver_->create("twice", kDefaultLimits);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().sys_errno, EEXIST);
  EXPECT_TRUE(run->usage());
}

TEST_F(DriverTest, AnUnusedRunIsRemovedTwiceWithoutError) {
  const auto run = make_run("unused", kDefaultLimits);
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->remove(milliseconds(0)));
  EXPECT_TRUE(run->remove(milliseconds(0)));
}

TEST_F(DriverTest, AMemoryHogIsKilledAndCounted) {
  const auto run = make_run("hog", {32U << 20, 1000, 16});
  ASSERT_TRUE(run);
  auto hog = Process::start_in(*run, [] { touch_memory(kHog); });
  EXPECT_TRUE(wait_for_oom(*run, kPatience));
  const auto status = hog.wait(kPatience);
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL) << *status;
  const auto usage = run->usage();
  ASSERT_TRUE(usage);
  EXPECT_GE(usage->oom_kills, 1U);
  EXPECT_GE(usage->memory_peak, 30U << 20);
  EXPECT_LE(usage->memory_peak, 32U << 20);
  EXPECT_TRUE(run->remove(kPatience));
}

// The control of the one above.
TEST_F(DriverTest, TheSameHogLivesWithAHigherLimit) {
  const auto run = make_run("roomy", {96U << 20, 1000, 16});
  ASSERT_TRUE(run);
  auto hog = Process::start_in(*run, [] { touch_memory(kHog); });
  EXPECT_EQ(hog.wait(kPatience), 0);
  EXPECT_FALSE(run->oom_happened());
  const auto usage = run->usage();
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->oom_kills, 0U);
  EXPECT_GE(usage->memory_peak, kHog);
}

TEST_F(DriverTest, SharedMemoryIsChargedToo) {
  const auto run = make_run("shm", {32U << 20, 1000, 16});
  ASSERT_TRUE(run);
  auto hog = Process::start_in(*run, [] {
    const std::string chunk(1U << 20, 'x');
    const UniqueFd memory(::memfd_create("hog", MFD_CLOEXEC));
    for (int i = 0; i < 64; ++i) {
      if (::write(memory.get(), chunk.data(), chunk.size()) < 0) ::_exit(103);
    }
  });
  EXPECT_TRUE(wait_for_oom(*run, kPatience));
  ASSERT_TRUE(hog.wait(kPatience));
}

TEST_F(DriverTest, ForksBeyondTheLimitAreRefusedAndCounted) {
  const auto run = make_run("forks", kDefaultLimits);
  ASSERT_TRUE(run);
  auto bomb = Process::start_in(*run, [] { ::_exit(count_forks_until_refused(200)); });
  const auto status = bomb.wait(kPatience);
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 63);
  const auto usage = run->usage();
  ASSERT_TRUE(usage);
  EXPECT_GE(usage->pids_refused, 1U);
  EXPECT_TRUE(usage->pids_peak == 64 || usage->pids_peak == 0) << usage->pids_peak;
  EXPECT_TRUE(run->remove(kPatience));
}

// The limit is so low that a busy machine, too, gives more than it.
TEST_F(DriverTest, CpuTimeIsLimitedAndCounted) {
  const auto run = make_run("cpu", {64U << 20, 50, 16});
  ASSERT_TRUE(run);
  const auto start = steady_clock::now();
  auto spinner = Process::start_in(*run, spin);
  std::uint64_t throttled = 0;
  while (throttled < 300'000 && steady_clock::now() - start < kPatience) {
    ASSERT_FALSE(spinner.wait(milliseconds(50)));  // the pace of the loop
    throttled = run->usage()->throttled_usec;
  }
  const auto used = run->cpu_usec();
  const auto elapsed = std::chrono::duration<double>(steady_clock::now() - start).count();
  ASSERT_TRUE(used);
  EXPECT_GE(throttled, 300'000U);
  EXPECT_GT(*used, 0U);
  EXPECT_LT(static_cast<double>(*used) / 1e6 / elapsed, 0.15);
  spinner.kill();
  EXPECT_TRUE(spinner.wait(kPatience));
  EXPECT_GE(run->usage()->cpu_usec, *used);
}

TEST_F(DriverTest, AThrottledGroupRunsFreelyOnceItsCpuLimitIsLifted) {
  const auto run = make_run("lifted", {64U << 20, 20, 16});
  ASSERT_TRUE(run);
  auto spinner = Process::start_in(*run, spin);
  const auto deadline = steady_clock::now() + kPatience;
  while (run->usage()->throttled_usec < 300'000 && steady_clock::now() < deadline) {
    ASSERT_FALSE(spinner.wait(milliseconds(50)));  // the pace of the loop
  }
  EXPECT_GE(run->usage()->throttled_usec, 300'000U) << "control: it was throttled";
  ASSERT_TRUE(run->lift_cpu_limit());
  EXPECT_TRUE(run->lift_cpu_limit()) << "a second time does nothing";
  const auto lifted = run->usage();
  std::uint64_t used = 0;
  while (used < 500'000 && steady_clock::now() < deadline) {
    ASSERT_FALSE(spinner.wait(milliseconds(50)));
    used = *run->cpu_usec() - lifted->cpu_usec;
  }
  EXPECT_GE(used, 500'000U);
  EXPECT_EQ(run->usage()->throttled_usec, lifted->throttled_usec);
}

TEST_F(DriverTest, ALiftedLimitOfARunThatIsGoneIsNoError) {
  const auto run = make_run("gone", kDefaultLimits);
  ASSERT_TRUE(run);
  ASSERT_TRUE(run->remove(kPatience));
  EXPECT_TRUE(run->lift_cpu_limit());
}

TEST_F(DriverTest, ARunDroppedWithProcessesInsideLeavesNothing) {
  auto run = make_run("dropped", kDefaultLimits);
  ASSERT_TRUE(run);
  auto sleeper = Process::start_in(*run, [] {
    (void)fork_until_refused(10);
    sleep_forever();
  });
  ASSERT_EQ(sleeper.start_error(), 0);
  run.reset();
  const auto status = sleeper.wait(kPatience);
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFSIGNALED(*status));
}

TEST_F(DriverTest, SweepRemovesTheDeadWithTheirProcessesAndNoOneElse) {
  auto dead = make_run("dead", kDefaultLimits);
  const auto alive = make_run("alive", kDefaultLimits);
  ASSERT_TRUE(dead && alive);
  auto leftover = Process::start_in(*dead, [] {
    (void)::signal(SIGTERM, SIG_IGN);
    (void)::setsid();
    (void)fork_until_refused(5);
    sleep_forever();
  });
  auto living = Process::start_in(*alive, sleep_forever);
  std::set<std::string> names{"dead"};
  const auto removed = make_driver(::geteuid())->sweep(is_dead, &names);
  ASSERT_TRUE(removed);
  EXPECT_EQ(*removed, 1);
  const auto status = leftover.wait(kPatience);
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFSIGNALED(*status));
  EXPECT_FALSE(living.wait(milliseconds(0)));
  EXPECT_TRUE(alive->usage());
  // What was swept away by another is no error for the owner.
  EXPECT_TRUE(dead->remove(milliseconds(100)));
  living.kill();
  EXPECT_TRUE(living.wait(kPatience));
}

TEST_F(DriverTest, SweepRemovesASpawnersLeaf) {
  auto spawner = Process::start(sleep_forever);
  ASSERT_TRUE(driver_->adopt_spawner(spawner.pid(), "gone"));
  std::set<std::string> names{"gone"};
  const auto removed = driver_->sweep(is_dead, &names);
  ASSERT_TRUE(removed);
  const bool has_leaf = driver_->name() == "v2";
  EXPECT_EQ(*removed, has_leaf ? 1 : 0);
  if (has_leaf) {
    EXPECT_TRUE(spawner.wait(kPatience));
  }
}

TEST_F(DriverTest, ManyRunsLeaveNothing) {
  constexpr int kRuns = 30;
  const auto start = steady_clock::now();
  for (int i = 0; i < kRuns; ++i) {
    const auto run = make_run("many", kDefaultLimits);
    ASSERT_TRUE(run);
    ASSERT_TRUE(run->remove(kPatience));
  }
  const auto elapsed = std::chrono::duration<double, std::milli>(steady_clock::now() - start);
  std::printf("groups made, limited and removed in %.2f ms\n", elapsed.count() / kRuns);
}

}  // namespace
}  // namespace sbx::cgroup::test
