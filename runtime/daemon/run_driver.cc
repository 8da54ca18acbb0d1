#include "runtime/daemon/run_driver.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <set>

#include "http/async/event.h"
#include "http/async/fd_watch.h"
#include "runtime/base/unique_fd.h"

namespace sbx::daemon {
namespace {

// poll(2) and epoll(7) give these the same numbers, so that masks need no translation.
static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT && POLLPRI == EPOLLPRI &&
              POLLERR == EPOLLERR && POLLHUP == EPOLLHUP);

class Interest {
 public:
  [[nodiscard]] static Result<Interest> make() {
    UniqueFd fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!fd) return async::watch_error("epoll_create1");
    return Interest(std::move(fd));
  }
  [[nodiscard]] int fd() const { return fd_.get(); }

  // Makes the set what `wanted` says. Each is set anew, also where number and events are as before:
  // the number may name another file by now, and a file that was closed has left the set by itself.
  [[nodiscard]] Result<void> update(const std::vector<pollfd>& wanted) {
    std::set<int> numbers;
    for (const pollfd& entry : wanted) {
      if (!numbers.insert(entry.fd).second) continue;
      epoll_event event{};
      event.events = static_cast<std::uint32_t>(static_cast<unsigned short>(entry.events));
      event.data.fd = entry.fd;
      if (::epoll_ctl(fd_.get(), EPOLL_CTL_MOD, entry.fd, &event) == 0) continue;
      if (errno != ENOENT) return async::watch_error("epoll_ctl(MOD)");
      if (::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, entry.fd, &event) != 0) {
        return async::watch_error("epoll_ctl(ADD)");
      }
    }
    for (const int number : watched_) {
      // Gone from the set already when it was closed (EBADF, ENOENT).
      if (numbers.count(number) == 0) (void)::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, number, nullptr);
    }
    watched_ = std::move(numbers);
    return {};
  }

  // What is ready now, as poll(2) would have filled it in.
  void fill(std::vector<pollfd>& wanted) const {
    std::array<epoll_event, 32> events;
    const int count = ::epoll_wait(fd_.get(), events.data(), events.size(), 0);
    for (pollfd& entry : wanted) {
      entry.revents = 0;
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (event.data.fd == entry.fd) entry.revents = static_cast<short>(event.events);
      }
    }
  }

 private:
  explicit Interest(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  std::set<int> watched_;
};

// Until the loop's next turn.
async::Task<void> let_others_run(async::Loop& loop) {
  // The second owner is what is posted, which may outlive this coroutine.
  auto turn = std::make_shared<async::Event>(loop);
  loop.post([turn] { turn->notify_all(); });
  (void)co_await turn->wait();
}

}  // namespace

async::Task<Result<void>> drive(async::Loop& loop, Run& run,
                                const async::Cancellation& cancellation) {
  auto interest = Interest::make();
  if (!interest) co_return std::move(interest).error();
  auto watch = async::FdWatch::watch(loop, interest->fd());
  if (!watch) co_return std::move(watch).error();
  const async::Cancellation* listening = &cancellation;
  while (!run.done()) {
    std::vector<pollfd> wanted = run.interest();
    if (auto updated = interest->update(wanted); !updated) co_return std::move(updated).error();
    // A deadline that has passed: the run has more to do at once. The others first.
    if (run.next_deadline() <= std::chrono::steady_clock::now()) co_await let_others_run(loop);
    const async::Wake wake = co_await watch->readable(run.next_deadline(), listening);
    if (wake == async::Wake::kCancelled) {
      run.cancel();
      listening = nullptr;
    } else {
      interest->fill(wanted);
      run.step(wanted);
    }
  }
  co_return Result<void>{};
}

}  // namespace sbx::daemon
