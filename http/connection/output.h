// Output: the sending side of a connection: a queue, and a task that empties it while it is not
// empty.
//
// Internal to the server. Once sending failed, or the client fell behind the pace, it is broken for
// good: the queue is dropped, `gone` is raised, and whatever is given later is dropped as well.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "http/async/cancellation.h"
#include "http/async/event.h"
#include "http/async/fd_watch.h"
#include "http/async/loop.h"
#include "http/async/task.h"
#include "http/async/task_group.h"
#include "http/connection/pace.h"

namespace sbx::http {

class Output {
 public:
  // All borrowed.
  Output(async::Loop& loop, async::FdWatch& watch, int socket, Pace pace, async::Cancellation& gone)
      : watch_(watch), socket_(socket), pace_(pace), gone_(gone), sent_(loop), flusher_(loop) {}

  void queue(std::string bytes);
  // Sends what can be sent without waiting, and sees to the rest.
  void flush();
  // Returns when at most `mark` bytes are queued, which the pace sees to. False: broken.
  [[nodiscard]] async::Task<bool> drained(std::size_t mark);

  [[nodiscard]] std::size_t queued() const { return queued_; }
  [[nodiscard]] bool broken() const { return broken_; }
  void break_off();

 private:
  enum class Progress : std::uint8_t { kAllSent, kWouldBlock, kFailed };
  [[nodiscard]] Progress send();
  [[nodiscard]] async::Task<void> keep_sending();
  void consume(std::size_t bytes);

  async::FdWatch& watch_;
  int socket_;
  Pace pace_;
  async::Cancellation& gone_;
  std::deque<std::string> queue_;
  std::size_t offset_ = 0;  // sent of the first
  std::size_t queued_ = 0;
  bool broken_ = false;
  async::Event sent_;
  async::TaskGroup flusher_;  // last: its task uses all the others
};

}  // namespace sbx::http
