#include "http/async/fd_watch.h"

// Boost 1.74's Asio uses std::exchange without including it.
#include <utility>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>

#include "http/async/event.h"
#include "http/async/loop.h"
#include "runtime/base/own_limits.h"

namespace sbx::async {

struct FdWatch::State {
  using Descriptor = boost::asio::posix::stream_descriptor;
  // One direction: who waits for it, and whether Asio has an operation for it in flight.
  struct Direction {
    Event event;
    bool armed = false;
  };

  State(Loop& loop, boost::asio::io_context& io)
      : descriptor(io),
        directions{Direction{Event(loop)}, Direction{Event(loop)}, Direction{Event(loop)}} {}

  Descriptor descriptor;
  std::array<Direction, 3> directions;  // by Descriptor::wait_type
};

Result<FdWatch> FdWatch::watch(Loop& loop, int fd) {
  auto state = std::make_shared<State>(loop, loop.io());
  boost::system::error_code failure;
  (void)state->descriptor.assign(fd, failure);  // the same as `failure`
  if (failure) {
    errno = failure.value();
    return watch_error("epoll_ctl");
  }
  return FdWatch(std::move(state));
}

Error watch_error(std::string operation) {
  if (errno != ENOSPC) return name_scarcity(sys_error(std::move(operation)));
  return host_lacks(std::move(operation), ENOSPC, "this user has as many epoll watches as he may",
                    "end programs of his that watch many descriptors, give him subordinate ids, so "
                    "that those in sandboxes do not count as his, or raise sysctl "
                    "fs.epoll.max_user_watches");
}

FdWatch::FdWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

FdWatch::FdWatch(FdWatch&&) noexcept = default;

FdWatch::~FdWatch() {
  // The descriptor is borrowed: out of the loop's epoll, but not closed.
  if (state_) (void)state_->descriptor.release();
}

// Asio looks at the descriptor anew for each operation, so that what was ready before is seen.
Wait FdWatch::wait(std::size_t direction, Deadline deadline, const Cancellation* cancellation) {
  State::Direction& waited = state_->directions[direction];
  if (!std::exchange(waited.armed, true)) {
    state_->descriptor.async_wait(
        static_cast<State::Descriptor::wait_type>(direction),
        [state = state_, direction](const boost::system::error_code& failure) {
          state->directions[direction].armed = false;
          // Any failure but our own release() is of a descriptor that epoll does not take, which
          // poll(2) calls always ready.
          if (failure == boost::asio::error::operation_aborted) return;
          state->directions[direction].event.notify_all();
        });
  }
  return waited.event.wait(deadline, cancellation);
}

Wait FdWatch::readable(Deadline deadline, const Cancellation* cancellation) {
  return wait(State::Descriptor::wait_read, deadline, cancellation);
}

Wait FdWatch::writable(Deadline deadline, const Cancellation* cancellation) {
  return wait(State::Descriptor::wait_write, deadline, cancellation);
}

Wait FdWatch::hung_up(Deadline deadline, const Cancellation* cancellation) {
  return wait(State::Descriptor::wait_error, deadline, cancellation);
}

}  // namespace sbx::async
