// WorkPool: blocking work off the loop, and its results back on it.
#include "http/async/work_pool.h"

#include <signal.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/base/sys.h"
#include "tests/unit/http/on_loop.h"

namespace sbx::async {
namespace {

using test::run_on;
using test::soon;

TEST(WorkPool, RunsAJobOnAnotherThreadAndResumesOnTheLoops) {
  Loop loop;
  WorkPool pool(loop, 2);
  run_on(loop, [](WorkPool& on) -> Task<void> {
    const auto own = std::this_thread::get_id();
    auto asking = [] { return std::this_thread::get_id(); };
    const auto theirs = co_await on.run(asking);
    EXPECT_NE(theirs, own);
    EXPECT_EQ(std::this_thread::get_id(), own);
  }(pool));
}

TEST(WorkPool, AJobMayHoldAndReturnWhatIsOnlyMoved) {
  Loop loop;
  WorkPool pool(loop, 1);
  run_on(loop, [](WorkPool& on) -> Task<void> {
    auto box = std::make_unique<int>(6);
    auto multiplying = [held = std::move(box)]() mutable {
      *held *= 7;
      return std::move(held);
    };
    const auto back = co_await on.run(multiplying);
    EXPECT_EQ(*back, 42);
    auto nothing = [] {};
    co_await on.run(nothing);
  }(pool));
}

Task<void> add(WorkPool& pool, int value, std::atomic<int>& sum, int& ended) {
  auto adding = [value, &sum] { sum += value; };
  co_await pool.run(adding);
  ++ended;
}

TEST(WorkPool, ManyJobsAllRun) {
  Loop loop;
  WorkPool pool(loop, 3);
  std::atomic<int> sum = 0;
  int ended = 0;
  TaskGroup group(loop);
  for (int i = 1; i <= 500; ++i) group.spawn(add(pool, i, sum, ended));
  run_on(loop, [](TaskGroup& tasks) -> Task<void> { (void)co_await tasks.join(soon()); }(group));
  EXPECT_EQ(sum, 500 * 501 / 2);
  EXPECT_EQ(ended, 500);
}

Task<void> read_byte(WorkPool& pool, int fd, int& ended) {
  auto reading = [fd] {
    char byte = 0;
    return ::read(fd, &byte, 1) == 1;
  };
  const bool got = co_await pool.run(reading);
  EXPECT_TRUE(got);
  ++ended;
}

TEST(WorkPool, AJobWaitsForNoOtherWhileThereMayBeMoreThreads) {
  Loop loop;
  auto gate = sys::pipe();
  ASSERT_TRUE(gate);
  WorkPool pool(loop, 4);
  std::atomic<int> sum = 0;
  int held = 0;
  int ended = 0;
  TaskGroup blocked(loop);
  for (int i = 0; i < 3; ++i) blocked.spawn(read_byte(pool, gate->first.get(), held));
  TaskGroup group(loop);
  group.spawn(add(pool, 1, sum, ended));
  run_on(loop, [](TaskGroup& tasks) -> Task<void> { (void)co_await tasks.join(soon()); }(group));
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(held, 0);
  ASSERT_EQ(::write(gate->second.get(), "xxx", 3), 3);
  run_on(loop, [](TaskGroup& tasks) -> Task<void> { (void)co_await tasks.join(soon()); }(blocked));
  EXPECT_EQ(held, 3);
}

TEST(WorkPool, NoMoreJobsRunAtOnceThanItMayHaveThreads) {
  Loop loop;
  auto gate = sys::pipe();
  ASSERT_TRUE(gate);
  WorkPool pool(loop, 2);
  std::atomic<int> sum = 0;
  int held = 0;
  int ended = 0;
  TaskGroup group(loop);
  for (int i = 0; i < 2; ++i) group.spawn(read_byte(pool, gate->first.get(), held));
  group.spawn(add(pool, 1, sum, ended));
  run_on(loop, [](Loop& on) -> Task<void> {
    for (int i = 0; i < 3; ++i) (void)co_await on.next_turn();
  }(loop));
  EXPECT_EQ(sum, 0);
  ASSERT_EQ(::write(gate->second.get(), "xx", 2), 2);
  run_on(loop, [](TaskGroup& tasks) -> Task<void> { (void)co_await tasks.join(soon()); }(group));
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(held, 2);
}

TEST(WorkPool, AJobWhoseCoroutineIsGoneRunsToItsEnd) {
  Loop loop;
  auto gate = sys::pipe();
  ASSERT_TRUE(gate);
  std::atomic<bool> ran = false;
  {
    WorkPool pool(loop, 1);
    {
      TaskGroup group(loop);
      group.spawn([](WorkPool& on, int fd, std::atomic<bool>& out) -> Task<void> {
        auto reading = [fd, &out] {
          char byte = 0;
          out = ::read(fd, &byte, 1) == 1;
        };
        co_await on.run(reading);
        ADD_FAILURE() << "resumed after its group was destroyed";
      }(pool, gate->first.get(), ran));
      run_on(loop, [](Loop& on) -> Task<void> {
        (void)co_await on.next_turn();
        (void)co_await on.next_turn();
      }(loop));
    }
    ASSERT_EQ(::write(gate->second.get(), "x", 1), 1);
  }
  EXPECT_TRUE(ran);
}

TEST(WorkPool, ItsThreadsTakeNoSignals) {
  Loop loop;
  WorkPool pool(loop, 1);
  run_on(loop, [](WorkPool& on) -> Task<void> {
    auto looking = [] {
      sigset_t mask;
      (void)::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      return sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGINT) == 1;
    };
    const bool blocked = co_await on.run(looking);
    EXPECT_TRUE(blocked);
  }(pool));
  sigset_t ours;
  (void)::pthread_sigmask(SIG_SETMASK, nullptr, &ours);
  EXPECT_EQ(sigismember(&ours, SIGTERM), 0);
}

}  // namespace
}  // namespace sbx::async
