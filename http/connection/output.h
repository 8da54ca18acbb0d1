// Output: the sending side of a connection: a queue, and a task that empties it while it is not
// empty.
//
// Internal to the server. Once sending failed, or the client fell behind the pace, it is broken for
// good: the queue is dropped, `gone` is raised, and whatever is given later is dropped as well.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "http/async/cancellation.h"
#include "http/async/event.h"
#include "http/async/fd_watch.h"
#include "http/async/loop.h"
#include "http/async/task.h"
#include "http/async/task_group.h"
#include "http/connection/pace.h"
#include "http/connection/peer_ledger.h"

namespace sbx::http {

class Output {
 public:
  // What is queued is counted there, for that peer. Borrowed, as is all else.
  struct Account {
    PeerLedger& ledger;
    PeerLedger::Key peer;
  };
  Output(async::Loop& loop, async::FdWatch& watch, int socket, Pace pace, async::Cancellation& gone,
         Account account)
      : watch_(watch),
        socket_(socket),
        pace_(pace),
        gone_(gone),
        account_(account),
        sent_(loop),
        flusher_(loop) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { drop(); }

  // Whether the budgets of answers that wait have room for so many bytes more.
  [[nodiscard]] PeerLedger::Verdict room(std::uint64_t bytes) const {
    return account_.ledger.room_for_unsent(account_.peer, bytes);
  }
  void queue(std::string bytes);
  // Sends what can be sent without waiting, and sees to the rest.
  void flush();
  // Returns when at most `mark` bytes are queued, which the pace sees to. False: broken.
  [[nodiscard]] async::Task<bool> drained(std::size_t mark);

  // How much of the pace's grace the client has used up.
  [[nodiscard]] Pace::Duration behind() const;
  [[nodiscard]] std::size_t queued() const { return queued_; }
  [[nodiscard]] bool broken() const { return broken_; }
  void break_off();

 private:
  enum class Progress : std::uint8_t { kAllSent, kWouldBlock, kFailed };
  [[nodiscard]] Progress send();
  [[nodiscard]] async::Task<void> keep_sending();
  void consume(std::size_t bytes);
  void drop();

  async::FdWatch& watch_;
  int socket_;
  Pace pace_;
  async::Cancellation& gone_;
  Account account_;
  std::deque<std::string> queue_;
  std::size_t offset_ = 0;  // sent of the first
  std::size_t queued_ = 0;
  bool broken_ = false;
  std::optional<Pace::TimePoint> waits_since_;  // for the socket to take more
  async::Event sent_;
  async::TaskGroup flusher_;  // last: its task uses all the others
};

}  // namespace sbx::http
