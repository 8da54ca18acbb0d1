// Event and Wait: who is woken, by what, and when.
#include "http/async/event.h"

#include <memory>
#include <thread>
#include <vector>

#include "http/async/cancellation.h"
#include "tests/unit/http/on_loop.h"

namespace sbx::async {
namespace {

using std::chrono::milliseconds;
using test::run_on;
using test::soon;

Task<void> note(Event& event, int name, std::vector<int>& woken) {
  const Wake wake = co_await event.wait(soon());
  if (wake == Wake::kReady) woken.push_back(name);
}

Task<void> turns(Loop& loop, int count) {
  for (int i = 0; i < count; ++i) (void)co_await loop.next_turn();
}

TEST(Event, WakesTheOneThatWaitedLongestOrAll) {
  Loop loop;
  Event event(loop);
  std::vector<int> woken;
  TaskGroup group(loop);
  for (int name = 1; name <= 4; ++name) group.spawn(note(event, name, woken));
  run_on(loop, [](Loop& on, Event& waited, std::vector<int>& names) -> Task<void> {
    co_await turns(on, 2);
    waited.notify_one();
    co_await turns(on, 2);
    EXPECT_EQ(names, (std::vector{1}));
    waited.notify_all();
    co_await turns(on, 2);
  }(loop, event, woken));
  EXPECT_EQ(woken, (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(group.size(), 0U);
}

TEST(Event, RemembersNoNotification) {
  Loop loop;
  Event event(loop);
  Wake wake = Wake::kReady;
  event.notify_all();
  run_on(loop, [](Event& waited, Wake& out) -> Task<void> {
    out = co_await waited.wait(after(milliseconds(5)));
  }(event, wake));
  EXPECT_EQ(wake, Wake::kDeadline);
}

TEST(Event, NobodyRunsInsideTheCallThatWakesHim) {
  Loop loop;
  Event event(loop);
  std::vector<int> woken;
  TaskGroup group(loop);
  group.spawn(note(event, 1, woken));
  run_on(loop, [](Loop& on, Event& waited, std::vector<int>& names) -> Task<void> {
    co_await turns(on, 2);
    waited.notify_all();
    EXPECT_TRUE(names.empty());
    co_await turns(on, 2);
    EXPECT_EQ(names.size(), 1U);
  }(loop, event, woken));
}

TEST(Wait, ADeadlineThatHasPassedDoesNotSuspend) {
  Loop loop;
  Event event(loop);
  Wake wake = Wake::kReady;
  const auto before = std::chrono::steady_clock::now();
  run_on(loop, [](Event& waited, Deadline passed, Wake& out) -> Task<void> {
    out = co_await waited.wait(passed);
  }(event, before, wake));
  EXPECT_EQ(wake, Wake::kDeadline);
}

Task<void> sleep_and_note(Loop& loop, milliseconds time, std::vector<int>& order) {
  (void)co_await loop.sleep_until(after(time));
  order.push_back(static_cast<int>(time.count()));
}

TEST(Wait, DeadlinesPassInTheirOrderWhateverTheOrderTheyWereGivenIn) {
  Loop loop;
  std::vector<int> order;
  TaskGroup group(loop);
  for (const int time : {120, 40, 200, 80, 160}) {
    group.spawn(sleep_and_note(loop, milliseconds(time), order));
  }
  run_on(loop, [](TaskGroup& tasks) -> Task<void> { (void)co_await tasks.join(soon()); }(group));
  EXPECT_EQ(order, (std::vector{40, 80, 120, 160, 200}));
}

TEST(Wait, AWaitThatWasWokenTwiceResumesOnce) {
  Loop loop;
  Event event(loop);
  Cancellation cancellation;
  int resumed = 0;
  TaskGroup group(loop);
  group.spawn([](Event& waited, Cancellation& by, int& count) -> Task<void> {
    const Wake wake = co_await waited.wait(soon(), &by);
    EXPECT_EQ(wake, Wake::kReady);
    ++count;
    const Wake again = co_await waited.wait(soon(), &by);
    EXPECT_EQ(again, Wake::kCancelled);
    ++count;
  }(event, cancellation, resumed));
  run_on(loop, [](Loop& on, Event& waited, Cancellation& by) -> Task<void> {
    co_await turns(on, 2);
    waited.notify_all();
    by.cancel();
    waited.notify_all();
    co_await turns(on, 3);
  }(loop, event, cancellation));
  EXPECT_EQ(resumed, 2);
}

TEST(Wait, DestroyedAfterItWasWokenItNeverResumes) {
  Loop loop;
  Event event(loop);
  std::vector<int> woken;
  auto group = std::make_unique<TaskGroup>(loop);
  group->spawn(note(event, 1, woken));
  run_on(loop, [](Loop& on, Event& waited, std::unique_ptr<TaskGroup>& tasks) -> Task<void> {
    co_await turns(on, 2);
    waited.notify_all();
    tasks.reset();
    co_await turns(on, 3);
  }(loop, event, group));
  EXPECT_TRUE(woken.empty());
}

TEST(Loop, APostFromAnotherThreadReachesARunningLoop) {
  Loop loop;
  std::thread other([&loop] { loop.post([&loop] { loop.stop(); }); });
  loop.run();
  other.join();
}

}  // namespace
}  // namespace sbx::async
