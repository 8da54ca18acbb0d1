// TaskGroup: owns the tasks that nobody awaits. The only way to start one.
//
// Destroying a group destroys the frames of what still runs in it, which cancels them at once;
// join() first where they have work to finish. An exception that leaves a task of the group is a
// broken invariant and ends the program.
#pragma once

#include <cstddef>
#include <memory>

#include "http/async/event.h"
#include "http/async/list.h"
#include "http/async/task.h"

namespace sbx::async {

namespace detail {
struct ByGroup;
}

class TaskGroup {
 public:
  explicit TaskGroup(Loop& loop);
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup();

  // Starts in the loop's next turn; the caller goes on first.
  void spawn(Task<void> task);
  [[nodiscard]] std::size_t size() const { return size_; }
  // Until no task is left (kReady), also none that was spawned meanwhile.
  [[nodiscard]] Task<Wake> join(Deadline deadline = kNoDeadline,
                                const Cancellation* cancellation = nullptr);

 private:
  struct Root;

  Loop& loop_;
  std::size_t size_ = 0;
  Event ended_;
  detail::List<Root, detail::ByGroup> roots_;
};

}  // namespace sbx::async
