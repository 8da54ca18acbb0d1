// TaskGroup: starting, joining, and being destroyed with work left.
#include "http/async/task_group.h"

#include "tests/unit/http/on_loop.h"

namespace sbx::async {
namespace {

using std::chrono::milliseconds;
using test::run_on;
using test::soon;

Task<void> count_after(Loop& loop, milliseconds time, int& count) {
  (void)co_await loop.sleep_until(after(time));
  ++count;
}

Task<void> join(TaskGroup& group, Deadline deadline, Wake& out) {
  out = co_await group.join(deadline);
}

TEST(TaskGroup, StartsInTheNextTurnNotInTheCall) {
  Loop loop;
  int count = 0;
  TaskGroup group(loop);
  group.spawn(count_after(loop, milliseconds(0), count));
  EXPECT_EQ(count, 0);
  EXPECT_EQ(group.size(), 1U);
  Wake wake = Wake::kDeadline;
  run_on(loop, join(group, soon(), wake));
  EXPECT_EQ(count, 1);
  EXPECT_EQ(wake, Wake::kReady);
}

Task<void> spawn_more(Loop& loop, TaskGroup& group, int left, int& count) {
  (void)co_await loop.next_turn();
  ++count;
  if (left > 0) group.spawn(spawn_more(loop, group, left - 1, count));
}

TEST(TaskGroup, JoinWaitsAlsoForTasksThatTasksStart) {
  Loop loop;
  int count = 0;
  TaskGroup group(loop);
  group.spawn(spawn_more(loop, group, 99, count));
  Wake wake = Wake::kDeadline;
  run_on(loop, join(group, soon(), wake));
  EXPECT_EQ(count, 100);
  EXPECT_EQ(group.size(), 0U);
}

TEST(TaskGroup, JoinGivesUpAtItsDeadline) {
  Loop loop;
  int count = 0;
  TaskGroup group(loop);
  group.spawn(count_after(loop, std::chrono::hours(1), count));
  Wake wake = Wake::kReady;
  run_on(loop, join(group, after(milliseconds(10)), wake));
  EXPECT_EQ(wake, Wake::kDeadline);
  EXPECT_EQ(group.size(), 1U);
}

TEST(TaskGroup, DestroyedItDestroysWhatIsLeft) {
  Loop loop;
  auto alive = std::make_shared<int>(0);
  {
    TaskGroup group(loop);
    for (int i = 0; i < 3; ++i) {
      group.spawn([](Loop& on, std::shared_ptr<int> held) -> Task<void> {
        (void)co_await on.sleep_until(soon());
        ++*held;
      }(loop, alive));
    }
    EXPECT_EQ(alive.use_count(), 4);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace sbx::async
