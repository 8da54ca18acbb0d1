// Task: values, exceptions, destruction, and a stack that does not grow.
#include "http/async/task.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "http/async/event.h"
#include "tests/unit/http/on_loop.h"

namespace sbx::async {
namespace {

using test::run_on;

Task<int> value_of(int value) {
  co_return value;
}

Task<std::unique_ptr<int>> boxed(int value) {
  co_return std::make_unique<int>(value);
}

Task<int> sum_to(int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    const int value = co_await value_of(1);
    sum += value;
  }
  co_return sum;
}

Task<int> nested(int depth) {
  if (depth == 0) co_return 0;
  const int below = co_await nested(depth - 1);
  co_return below + 1;
}

Task<int> throwing(Loop& loop) {
  (void)co_await loop.next_turn();
  throw std::runtime_error("out of the task");
}

Task<std::string> caught(Loop& loop) {
  try {
    const int never = co_await throwing(loop);
    co_return std::to_string(never);
  } catch (const std::runtime_error& thrown) {
    co_return thrown.what();
  }
}

TEST(Task, HandsItsValueToTheOneWhoAwaits) {
  Loop loop;
  int value = 0;
  run_on(loop, [](int& out) -> Task<void> {
    const int got = co_await value_of(7);
    const auto box = co_await boxed(8);
    out = got * 10 + *box;
  }(value));
  EXPECT_EQ(value, 78);
}

TEST(Task, AMillionThatEndAtOnceCostNoStack) {
  Loop loop;
  int sum = 0;
  run_on(loop, [](int& out) -> Task<void> { out = co_await sum_to(1'000'000); }(sum));
  EXPECT_EQ(sum, 1'000'000);
}

TEST(Task, NestsAsDeepAsCallsDo) {
  Loop loop;
  int depth = 0;
  run_on(loop, [](int& out) -> Task<void> { out = co_await nested(1000); }(depth));
  EXPECT_EQ(depth, 1000);
}

TEST(Task, AnExceptionComesOutOfTheAwait) {
  Loop loop;
  std::string what;
  run_on(loop,
         [](Loop& on, std::string& out) -> Task<void> { out = co_await caught(on); }(loop, what));
  EXPECT_EQ(what, "out of the task");
}

TEST(Task, DoesNotStartBeforeItIsAwaited) {
  bool started = false;
  {
    const auto task = [](bool& out) -> Task<void> {
      out = true;
      co_return;
    }(started);
    EXPECT_FALSE(started);
  }
  EXPECT_FALSE(started);
}

TEST(Task, DestroyingASuspendedChainRunsItsDestructorsInnermostFirst) {
  Loop loop;
  Event never(loop);
  std::string order;
  struct Mark {
    std::string& order;
    char name;
    ~Mark() { order += name; }
  };
  struct Chain {
    static Task<void> inner(Event& event, std::string& order) {
      const Mark mark{order, 'i'};
      (void)co_await event.wait();
    }
    static Task<void> outer(Event& event, std::string& order) {
      const Mark mark{order, 'o'};
      co_await inner(event, order);
    }
  };
  {
    TaskGroup group(loop);
    group.spawn(Chain::outer(never, order));
    run_on(loop, [](Loop& on) -> Task<void> {
      (void)co_await on.next_turn();
      (void)co_await on.next_turn();
    }(loop));
    EXPECT_TRUE(never.awaited());
    EXPECT_EQ(order, "");
  }
  EXPECT_EQ(order, "io");
  EXPECT_FALSE(never.awaited());
}

}  // namespace
}  // namespace sbx::async
