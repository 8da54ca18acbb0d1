// Wait: one suspended coroutine, resumed by the first of its source, its deadline, its
// cancellation.
//
// What Event::wait, FdWatch::readable and Loop::sleep_until return; the only thing in the tree that
// suspends on the loop. `Wake wake = co_await event.wait(deadline, &cancellation);`
//
// The coroutine is never resumed inside the call that wakes it, but in the loop's next turn: a call
// of notify() or cancel() returns before anybody acts on it.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <map>

#include "http/async/list.h"

namespace sbx::async {

class Cancellation;
class Event;
class Loop;

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();
[[nodiscard]] inline Deadline after(std::chrono::steady_clock::duration wait) {
  return std::chrono::steady_clock::now() + wait;
}

// Why a wait ended.
enum class Wake : std::uint8_t {
  kReady,      // the source. A hint: look again at what was waited for
  kDeadline,   // the deadline passed
  kCancelled,  // cancelled before or during the wait
};

namespace detail {
struct BySource;
struct ByCancellation;
struct ByReady;
}  // namespace detail

class [[nodiscard]] Wait : private detail::Link<detail::BySource>,
                           private detail::Link<detail::ByCancellation>,
                           private detail::Link<detail::ByReady> {
 public:
  // `source` null: only deadline and cancellation. `cancellation` null: none. All are borrowed.
  Wait(Loop& loop, Event* source, Deadline deadline, const Cancellation* cancellation)
      : loop_(loop), source_(source), cancellation_(cancellation), deadline_(deadline) {}
  struct NextTurn {};
  Wait(Loop& loop, NextTurn) : loop_(loop), at_once_(true) {}
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait();

  // A wait that was cancelled beforehand, or whose deadline has passed, does not suspend.
  [[nodiscard]] bool await_ready();
  void await_suspend(std::coroutine_handle<> awaiting);
  [[nodiscard]] Wake await_resume() const { return wake_; }

 private:
  template <typename T, typename Tag>
  friend class detail::List;
  friend class Cancellation;
  friend class Event;
  friend class Loop;

  using Timers = std::multimap<Deadline, Wait*>;

  // Notes the reason, leaves source, timer and cancellation, and queues itself for resumption.
  void wake(Wake reason);

  Loop& loop_;
  Event* source_ = nullptr;
  const Cancellation* cancellation_ = nullptr;
  Deadline deadline_ = kNoDeadline;
  bool at_once_ = false;
  Timers::iterator timer_;
  bool timed_ = false;
  Wake wake_ = Wake::kReady;
  std::coroutine_handle<> awaiting_;
};

}  // namespace sbx::async
