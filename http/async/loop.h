// Loop: the event loop of a daemon. One per process, one thread, which runs every coroutine.
//
// A Boost.Asio io_context inside (loop.cc and fd_watch.cc are the only files that know). main()
// builds it after the spawner was forked and gives it to those who wait. Nothing here is
// thread-safe but post().
#pragma once

#include <functional>
#include <memory>

#include "http/async/wait.h"

namespace boost::asio {
class io_context;
}

namespace sbx::async {

class Loop {
 public:
  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  // Precondition: whoever waits on it is gone (TaskGroups are destroyed first).
  ~Loop();

  // Runs coroutines until stop(). Blocks.
  void run();
  // run() returns after the current turn. What still waits keeps waiting for the next run().
  void stop();
  // Calls `action` in the loop's next turn. From any thread, and after run() has returned.
  void post(std::function<void()> action);

  // Lets everybody else who is ready run first, and descriptors be looked at. Ends with kReady.
  [[nodiscard]] Wait next_turn();
  // Ends with kDeadline or kCancelled.
  [[nodiscard]] Wait sleep_until(Deadline deadline, const Cancellation* cancellation = nullptr) {
    return {*this, nullptr, deadline, cancellation};
  }

 private:
  friend class FdWatch;
  friend class Wait;
  struct State;

  [[nodiscard]] boost::asio::io_context& io();
  void queue(Wait& woken);
  void resume_ready();
  void add_timer(Wait& wait);
  void forget_timer(Wait& wait);
  void arm_timer();
  void expire();

  std::unique_ptr<State> state_;
};

}  // namespace sbx::async
