// Input: the receiving side of a connection, with the bytes that were not used yet.
//
// Internal to the server. What is pending is bounded by its users: they fill again only when
// nothing more can be made of what is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/async/fd_watch.h"
#include "http/async/loop.h"
#include "http/async/task.h"

namespace sbx::http {

inline constexpr std::size_t kReadBytes = 64U << 10;

class Input {
 public:
  // All borrowed.
  Input(async::Loop& loop, async::FdWatch& watch, int socket)
      : loop_(loop), watch_(watch), socket_(socket) {}

  enum class Fill : std::uint8_t {
    kData,  // something was added
    kEnd,   // the client closed, or shut down for writing
    kLate,  // the deadline passed
    kCancelled,
    kBroken,  // the connection was reset
  };
  // Waits for bytes, and adds up to kReadBytes. Reads that never wait let others run now and then.
  [[nodiscard]] async::Task<Fill> fill(async::Deadline deadline,
                                       const async::Cancellation* cancellation);

  [[nodiscard]] std::string_view pending() const { return pending_; }
  void consume(std::size_t bytes) { pending_.erase(0, bytes); }
  // Gives memory back: for connections that will be idle.
  void shrink();

 private:
  [[nodiscard]] Fill receive(bool& would_block);

  async::Loop& loop_;
  async::FdWatch& watch_;
  int socket_;
  int reads_in_a_row_ = 0;
  std::string pending_;
};

}  // namespace sbx::http
