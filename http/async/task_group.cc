#include "http/async/task_group.h"

#include <coroutine>
#include <exception>

#include "http/async/loop.h"

namespace sbx::async {

// The promise of the coroutine that awaits one task. Its frame destroys itself at the end.
struct TaskGroup::Root : detail::Link<detail::ByGroup> {
  using Handle = std::coroutine_handle<Root>;
  struct Frame {
    using promise_type = Root;
    Handle handle;
  };
  struct End {
    bool await_ready() noexcept { return false; }
    void await_suspend(Handle ended) noexcept {
      TaskGroup& owner = *ended.promise().group;
      ended.destroy();
      if (--owner.size_ == 0) owner.ended_.notify_all();
    }
    void await_resume() noexcept {}
  };

  Frame get_return_object() noexcept { return {Handle::from_promise(*this)}; }
  std::suspend_always initial_suspend() noexcept { return {}; }
  End final_suspend() noexcept { return {}; }
  void return_void() noexcept {}
  void unhandled_exception() noexcept { std::terminate(); }

  static Frame run(Loop* loop, Task<void> task) {
    (void)co_await loop->next_turn();
    co_await task;
  }

  TaskGroup* group = nullptr;
};

TaskGroup::TaskGroup(Loop& loop) : loop_(loop), ended_(loop) {}

TaskGroup::~TaskGroup() {
  while (!roots_.empty()) Root::Handle::from_promise(roots_.front()).destroy();
}

void TaskGroup::spawn(Task<void> task) {
  const Root::Frame root = Root::run(&loop_, std::move(task));
  root.handle.promise().group = this;
  roots_.push_back(root.handle.promise());
  ++size_;
  root.handle.resume();  // up to next_turn()
}

Task<Wake> TaskGroup::join(Deadline deadline, const Cancellation* cancellation) {
  while (size_ > 0) {
    const Wake wake = co_await ended_.wait(deadline, cancellation);
    if (wake != Wake::kReady) co_return wake;
  }
  co_return Wake::kReady;
}

}  // namespace sbx::async
