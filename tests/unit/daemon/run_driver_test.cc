#include "runtime/daemon/run_driver.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "http/async/event.h"
#include "http/async/task_group.h"
#include "runtime/base/sys.h"

namespace sbx::daemon {
namespace {

using Clock = std::chrono::steady_clock;

// A run that reads from a pipe, then from a second one that gets the first one's number.
class FakeRun final : public Run {
 public:
  FakeRun() { open_pipe(); }
  const std::vector<pollfd>& interest() override {
    interest_.assign({{read_.get(), POLLIN, 0}});
    return interest_;
  }
  Clock::time_point next_deadline() const override { return deadline_; }
  void step(const std::vector<pollfd>& ready) override {
    ++steps_;
    if (Clock::now() >= deadline_) {
      timed_out_ = done_ = true;
      return;
    }
    if (ready[0].revents == 0) return;
    char byte = 0;
    if (::read(read_.get(), &byte, 1) != 1) return;
    text_ += byte;
    if (text_.size() == 3) {
      done_ = true;
      return;
    }
    const int number = read_.get();
    open_pipe();
    EXPECT_EQ(read_.get(), number) << "the case under test: the same number, another file";
  }
  bool done() const override { return done_; }
  void cancel() override {
    cancelled_ = true;
    deadline_ = Clock::now() + std::chrono::milliseconds(20);
  }
  collect::Outcome take_outcome() override { return {}; }
  const std::string& id() const override { return text_; }

  // The next pipe is made when the one before was read; each is written to at once.
  void open_pipe() {
    write_.reset();
    read_.reset();
    auto pipe = sys::pipe(O_NONBLOCK);
    ASSERT_TRUE(pipe);
    read_ = std::move(pipe->first);
    write_ = std::move(pipe->second);
    if (!silent_) {
      EXPECT_EQ(::write(write_.get(), "x", 1), 1);
    }
  }

  UniqueFd read_, write_;
  std::vector<pollfd> interest_;
  std::string text_;
  Clock::time_point deadline_ = Clock::time_point::max();
  int steps_ = 0;
  bool done_ = false;
  bool cancelled_ = false;
  bool timed_out_ = false;
  bool silent_ = false;
};

async::Task<void> drive_and_stop(async::Loop& loop, Run& run, const async::Cancellation& cancel) {
  const auto driven = co_await drive(loop, run, cancel);
  EXPECT_TRUE(driven);
  loop.stop();
}

async::Task<void> cancel_soon(async::Loop& loop, async::Cancellation& cancel) {
  (void)co_await loop.sleep_until(async::after(std::chrono::milliseconds(10)));
  cancel.cancel();
}

TEST(Drive, SeesADescriptorThatTookTheNumberOfAnother) {
  async::Loop loop;
  async::Cancellation cancel;
  FakeRun run;
  async::TaskGroup group(loop);
  group.spawn(drive_and_stop(loop, run, cancel));
  loop.run();
  EXPECT_EQ(run.text_, "xxx");
  EXPECT_FALSE(run.cancelled_);
}

TEST(Drive, KeepsTheDeadline) {
  async::Loop loop;
  async::Cancellation cancel;
  FakeRun run;
  run.silent_ = true;
  run.open_pipe();
  run.deadline_ = Clock::now() + std::chrono::milliseconds(20);
  async::TaskGroup group(loop);
  group.spawn(drive_and_stop(loop, run, cancel));
  loop.run();
  EXPECT_TRUE(run.timed_out_);
  EXPECT_LE(run.steps_, 3) << "it waits, and does not spin";
}

// A run that has something to do at once, a hundred times over.
class BusyRun final : public Run {
 public:
  const std::vector<pollfd>& interest() override { return interest_; }
  Clock::time_point next_deadline() const override { return Clock::time_point::min(); }
  void step(const std::vector<pollfd>&) override { ++steps_; }
  bool done() const override { return steps_ == 100; }
  void cancel() override {}
  collect::Outcome take_outcome() override { return {}; }
  const std::string& id() const override { return id_; }

  std::vector<pollfd> interest_;
  std::string id_;
  int steps_ = 0;
};

async::Task<void> count_turns(async::Loop& loop, const BusyRun& run, int& turns) {
  async::Event never(loop);
  while (!run.done()) {
    ++turns;
    (void)co_await never.wait(async::after(std::chrono::microseconds(1)));
  }
}

TEST(Drive, ABusyRunLetsOthersHaveTheirTurn) {
  async::Loop loop;
  async::Cancellation cancel;
  BusyRun run;
  int turns = 0;
  async::TaskGroup group(loop);
  group.spawn(drive_and_stop(loop, run, cancel));
  group.spawn(count_turns(loop, run, turns));
  loop.run();
  EXPECT_GT(turns, 20);
}

TEST(Drive, ACancelledRunIsDrivenToItsEnd) {
  async::Loop loop;
  async::Cancellation cancel;
  FakeRun run;
  run.silent_ = true;
  run.open_pipe();
  async::TaskGroup group(loop);
  group.spawn(drive_and_stop(loop, run, cancel));
  group.spawn(cancel_soon(loop, cancel));
  loop.run();
  EXPECT_TRUE(run.cancelled_);
  EXPECT_TRUE(run.done());
}

}  // namespace
}  // namespace sbx::daemon
