// Runs one coroutine on a loop of its own until it ends, for tests of async/.
#pragma once

#include <utility>

#include "http/async/loop.h"
#include "http/async/task.h"
#include "http/async/task_group.h"

namespace sbx::async::test {

inline Task<void> then_stop(Loop& loop, Task<void> task) {
  co_await task;
  loop.stop();
}

inline void run_on(Loop& loop, Task<void> task) {
  TaskGroup group(loop);
  group.spawn(then_stop(loop, std::move(task)));
  loop.run();
}

// Far enough that it is never reached, near enough that a broken test ends.
inline Deadline soon() {
  return after(std::chrono::seconds(60));
}

}  // namespace sbx::async::test
