// WorkPool: a few threads for work that blocks (disk, hashing, directory trees).
//
//   auto measuring = [path = std::move(path)] { return measure(path); };
//   const auto size = co_await pool.run(measuring);
//
// A job owns its data (captures by value, no references into a coroutine): when the awaiting
// coroutine is destroyed the job still runs to its end, and its result is dropped. Jobs start in
// the order in which they were given; each awaiting coroutine has one, so the queue is bounded by
// them. A job must not throw. Threads are made when there is work for them, and stay; they block
// all signals.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "http/async/event.h"
#include "http/async/task.h"

namespace sbx::async {

class WorkPool {
 public:
  // Up to so many threads; the first is made here. Precondition: most_threads ≥ 1. Made after the
  // spawner was forked.
  WorkPool(Loop& loop, std::size_t most_threads);
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;
  // Blocks until the jobs that were given have run.
  ~WorkPool();

  // Moves from `job`, which has a name because a lambda inside the co_await would be destroyed
  // twice (task.h). Cannot be cancelled: takes as long as the job and those before it.
  template <typename F>
  [[nodiscard]] Task<std::invoke_result_t<F&>> run(F& job) {
    using R = std::invoke_result_t<F&>;
    struct Shared {
      Shared(Loop& loop, F&& f) : done(loop), work(std::move(f)) {}
      Event done;
      F work;
      bool finished = false;
      std::conditional_t<std::is_void_v<R>, std::optional<bool>, std::optional<R>> result;
    };
    // The second owner is the job in the pool, which may outlive this coroutine.
    auto shared = std::make_shared<Shared>(loop_, std::move(job));
    std::function<void()> work = [shared] {
      if constexpr (std::is_void_v<R>) {
        shared->work();
      } else {
        shared->result.emplace(shared->work());
      }
    };
    std::function<void()> finish = [shared] {
      shared->finished = true;
      shared->done.notify_all();
    };
    submit(std::move(work), std::move(finish));
    while (!shared->finished) (void)co_await shared->done.wait();
    if constexpr (!std::is_void_v<R>) co_return std::move(*shared->result);
  }

 private:
  struct State;
  // `work` runs on a thread of the pool, then `finish` on the loop's. Both are destroyed there.
  void submit(std::function<void()> work, std::function<void()> finish);

  Loop& loop_;
  std::unique_ptr<State> state_;
};

}  // namespace sbx::async
