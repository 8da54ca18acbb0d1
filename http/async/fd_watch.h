// FdWatch: waits until a descriptor is readable, writable or hung up.
//
// For what is pollable: sockets, pipes, eventfds, pidfds, signalfds, and an epoll descriptor, which
// is readable when one of its own is ready (how the daemon drives the many descriptors of a run by
// one). The descriptor is borrowed, must not be watched by another FdWatch of the loop (dup(2) it),
// and is open as long as the watch lives. Level-triggered: a wait on what is ready now ends at
// once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "http/async/wait.h"
#include "runtime/base/result.h"

namespace sbx::async {

class FdWatch {
 public:
  // What epoll does not take (a regular file) is always ready. Fails when it is not open, or is
  // watched already, and as watch_error() says.
  [[nodiscard]] static Result<FdWatch> watch(Loop& loop, int fd);
  FdWatch(FdWatch&&) noexcept;
  FdWatch& operator=(FdWatch&&) = delete;
  // Precondition: nobody waits. The descriptor stays open.
  ~FdWatch();

  // kReady is a hint: the read or write after it is non-blocking, and EAGAIN means to wait again.
  [[nodiscard]] Wait readable(Deadline deadline = kNoDeadline,
                              const Cancellation* cancellation = nullptr);
  [[nodiscard]] Wait writable(Deadline deadline = kNoDeadline,
                              const Cancellation* cancellation = nullptr);
  // Both directions are closed, or an error is pending (EPOLLHUP, EPOLLERR; also EPOLLPRI).
  [[nodiscard]] Wait hung_up(Deadline deadline = kNoDeadline,
                             const Cancellation* cancellation = nullptr);

 private:
  struct State;
  explicit FdWatch(std::shared_ptr<State> state);
  [[nodiscard]] Wait wait(std::size_t direction, Deadline deadline,
                          const Cancellation* cancellation);
  std::shared_ptr<State> state_;  // the second owner is the operation that Asio has in flight
};

// What errno says of an epoll_ctl(2) that failed: kHost, with the fix, where the user has as many
// watches as he may (ENOSPC), which his other programs count for too.
[[nodiscard]] Error watch_error(std::string operation);

}  // namespace sbx::async
