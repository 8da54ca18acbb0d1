// Event: where coroutines of one loop wait for each other, like a condition variable.
//
// It remembers nothing: notify wakes those who wait at that moment. Check the condition, wait,
// check again; between check and wait nothing else runs. Outlives its waits, or they never end.
#pragma once

#include "http/async/list.h"
#include "http/async/wait.h"

namespace sbx::async {

class Event {
 public:
  explicit Event(Loop& loop) : loop_(loop) {}

  [[nodiscard]] Wait wait(Deadline deadline = kNoDeadline,
                          const Cancellation* cancellation = nullptr) {
    return {loop_, this, deadline, cancellation};
  }
  // The one that has waited longest, if any.
  void notify_one();
  void notify_all();
  [[nodiscard]] bool awaited() const { return !waits_.empty(); }

 private:
  friend class Wait;
  Loop& loop_;
  detail::List<Wait, detail::BySource> waits_;
};

}  // namespace sbx::async
