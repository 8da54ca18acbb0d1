// FdWatch: readiness of the kinds of descriptors that the daemons wait for.
#include "http/async/fd_watch.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "http/async/cancellation.h"
#include "http/async/event.h"
#include "runtime/base/sys.h"
#include "tests/unit/http/on_loop.h"

namespace sbx::async {
namespace {

using std::chrono::milliseconds;
using test::run_on;
using test::soon;

struct Ends {
  UniqueFd ours;
  UniqueFd theirs;
};

Ends socket_pair() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Task<void> readable(FdWatch& watch, Deadline deadline, Wake& out) {
  out = co_await watch.readable(deadline);
}
Task<void> writable(FdWatch& watch, Deadline deadline, Wake& out) {
  out = co_await watch.writable(deadline);
}
Task<void> hung_up(FdWatch& watch, Deadline deadline, Wake& out) {
  out = co_await watch.hung_up(deadline);
}

class Watch : public ::testing::Test {
 protected:
  void SetUp() override {
    ends_ = socket_pair();
    auto watch = FdWatch::watch(loop_, ends_.ours.get());
    ASSERT_TRUE(watch);
    watch_.emplace(*std::move(watch));
  }
  Wake wait(Task<void> (*how)(FdWatch&, Deadline, Wake&), Deadline deadline = soon()) {
    Wake wake = Wake::kCancelled;
    run_on(loop_, how(*watch_, deadline, wake));
    return wake;
  }

  Loop loop_;
  Ends ends_;
  std::optional<FdWatch> watch_;
};

TEST_F(Watch, SeesWhatWasReadyBeforeAndAgainUntilItIsRead) {
  ASSERT_EQ(::write(ends_.theirs.get(), "x", 1), 1);
  EXPECT_EQ(wait(readable), Wake::kReady);
  EXPECT_EQ(wait(readable), Wake::kReady);
  char byte = 0;
  ASSERT_EQ(::read(ends_.ours.get(), &byte, 1), 1);
  // One hint may be left from before; then there is nothing.
  (void)wait(readable, after(milliseconds(20)));
  EXPECT_EQ(wait(readable, after(milliseconds(20))), Wake::kDeadline);
}

TEST_F(Watch, SeesWhatBecomesReadyDuringTheWait) {
  loop_.post([this] { (void)::write(ends_.theirs.get(), "x", 1); });
  EXPECT_EQ(wait(readable), Wake::kReady);
}

TEST_F(Watch, AFullSocketIsNotWritableUntilItIsRead) {
  const std::string block(65536, 'x');
  while (::write(ends_.ours.get(), block.data(), block.size()) > 0) {
  }
  (void)wait(writable, after(milliseconds(20)));
  EXPECT_EQ(wait(writable, after(milliseconds(20))), Wake::kDeadline);
  loop_.post([this] {
    std::string drop(1U << 20, '\0');
    while (::read(ends_.theirs.get(), drop.data(), drop.size()) > 0) {
    }
  });
  EXPECT_EQ(wait(writable), Wake::kReady);
}

TEST_F(Watch, ShuttingDownForWritingIsNoHangUpButClosingIs) {
  ASSERT_EQ(::shutdown(ends_.theirs.get(), SHUT_WR), 0);
  EXPECT_EQ(wait(hung_up, after(milliseconds(50))), Wake::kDeadline);
  ends_.theirs.reset();
  EXPECT_EQ(wait(hung_up), Wake::kReady);
}

TEST_F(Watch, WaitsEachWayAtTheSameTime) {
  Wake read = Wake::kCancelled;
  Wake closed = Wake::kCancelled;
  TaskGroup group(loop_);
  group.spawn(readable(*watch_, soon(), read));
  group.spawn(hung_up(*watch_, soon(), closed));
  EXPECT_EQ(wait(writable), Wake::kReady);
  ends_.theirs.reset();
  run_on(loop_, [](TaskGroup& tasks) -> Task<void> { (void)co_await tasks.join(soon()); }(group));
  EXPECT_EQ(read, Wake::kReady);
  EXPECT_EQ(closed, Wake::kReady);
}

TEST_F(Watch, AnEpollDescriptorIsReadableWhenOneOfItsOwnIs) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  auto pipe = sys::pipe();
  ASSERT_TRUE(pipe);
  epoll_event event{.events = EPOLLIN, .data = {}};
  ASSERT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, pipe->first.get(), &event), 0);
  watch_.reset();
  auto watch = FdWatch::watch(loop_, epoll.get());
  ASSERT_TRUE(watch);
  watch_.emplace(*std::move(watch));
  EXPECT_EQ(wait(readable, after(milliseconds(20))), Wake::kDeadline);
  ASSERT_EQ(::write(pipe->second.get(), "x", 1), 1);
  EXPECT_EQ(wait(readable), Wake::kReady);
  EXPECT_EQ(wait(readable), Wake::kReady);
  watch_.reset();
}

TEST_F(Watch, LeavesTheDescriptorOpenAndFreeToBeWatchedAgain) {
  watch_.reset();
  ASSERT_EQ(::write(ends_.ours.get(), "x", 1), 1);
  auto again = FdWatch::watch(loop_, ends_.ours.get());
  EXPECT_TRUE(again);
}

TEST_F(Watch, ADescriptorIsWatchedOnce) {
  auto second = FdWatch::watch(loop_, ends_.ours.get());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().sys_errno, EEXIST);
}

TEST(WatchError, NoWatchLeftIsTheHostsLackWithTheFix) {
  errno = ENOSPC;
  const Error none_left = watch_error("epoll_ctl");
  EXPECT_EQ(none_left.code, ErrorCode::kHost);
  EXPECT_NE(none_left.fix.find("fs.epoll.max_user_watches"), std::string::npos);
  errno = EMFILE;
  EXPECT_EQ(watch_error("epoll_create1").code, ErrorCode::kHost);
  errno = EEXIST;
  EXPECT_EQ(watch_error("epoll_ctl").code, ErrorCode::kInternal);
}

TEST_F(Watch, ARegularFileIsAlwaysReady) {
  auto file = sys::open("/proc/self/exe", O_RDONLY);
  ASSERT_TRUE(file);
  watch_.reset();
  auto watch = FdWatch::watch(loop_, file->get());
  ASSERT_TRUE(watch);
  watch_.emplace(*std::move(watch));
  EXPECT_EQ(wait(readable), Wake::kReady);
  EXPECT_EQ(wait(readable), Wake::kReady);
  watch_.reset();
}

TEST_F(Watch, GoneWhileAnOperationIsInFlightNobodyIsWoken) {
  EXPECT_EQ(wait(readable, after(milliseconds(5))), Wake::kDeadline);
  watch_.reset();
  ASSERT_EQ(::write(ends_.theirs.get(), "x", 1), 1);
  run_on(loop_, [](Loop& loop) -> Task<void> {
    (void)co_await loop.sleep_until(after(milliseconds(20)));
  }(loop_));
}

}  // namespace
}  // namespace sbx::async
