// Supervision with a spawner and an init that say what a test has them say: who ended a run, when
// what tells of it comes late.
#include "runtime/supervise/supervision.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/base/sys.h"

namespace sbx::supervise {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kExitedWithSeven = 7 << 8;

// A process in init's place, until it is let go or killed.
class Init {
 public:
  Init() {
    auto lifeline = sys::pipe(0);
    if (!lifeline) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      lifeline->second.reset();
      char byte = 0;
      ::_exit(::read(lifeline->first.get(), &byte, 1) == 0 ? 0 : 1);
    }
    lifeline_ = std::move(lifeline->second);
    pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  }
  Init(const Init&) = delete;
  Init& operator=(const Init&) = delete;
  ~Init() {
    lifeline_.reset();
    ::waitpid(pid_, nullptr, 0);
  }
  // Dead, and not reaped.
  void end() {
    lifeline_.reset();
    pollfd ended{pidfd_.get(), POLLIN, 0};
    ::poll(&ended, 1, -1);
  }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }

 private:
  pid_t pid_ = -1;
  UniqueFd lifeline_, pidfd_;
};

class SupervisionTest : public ::testing::Test {
 protected:
  SupervisionTest() {
    plan_.argv = {"program"};
    plan_.policy.limits.wall_seconds = 3s;
  }

  // A run that was launched `ago`, and that has reached its program.
  void begin(Clock::duration ago) {
    plan_.policy.limits.wall_seconds -= std::chrono::duration_cast<std::chrono::milliseconds>(ago);
    request(0s);
    launch();
    tell(plan::RecordKind::kAboutToExec);
  }
  // One that the spawner was asked for `ago`.
  void request(Clock::duration ago) {
    spawn::Child child;
    auto control = sys::seqpacket_pair();
    auto report = sys::pipe(O_NONBLOCK);
    ASSERT_TRUE(control && report);
    child.control = std::move(control->first);
    control_ = std::move(control->second);
    child.report = std::move(report->first);
    report_ = std::move(report->second);
    child.spawner = ::getpid();
    child.spawner_silent = &spawner_silent_;
    child.launched = Clock::now() - ago;
    SupervisionOptions options;
    options.plan = &plan_;
    supervision_ = std::make_unique<Supervision>(std::move(child), std::move(options));
  }
  void launch() {
    spawn::AnswerPacket launched;
    launched.kind = spawn::AnswerKind::kLaunched;
    const int pidfd = init_.pidfd();
    answer(launched, {&pidfd, 1});
  }

  void answer(const spawn::AnswerPacket& packet, std::span<const int> fds = {}) {
    ASSERT_TRUE(sys::send_packet(
        control_.get(), {reinterpret_cast<const std::uint8_t*>(&packet), sizeof packet}, fds));
  }
  void tell(plan::RecordKind kind, int status = 0, Clock::time_point when = {}) {
    plan::Record record;
    record.count = static_cast<std::uint64_t>(when.time_since_epoch().count());
    record.kind = kind;
    record.status = status;
    ASSERT_EQ(::write(report_.get(), &record, sizeof record), ssize_t{sizeof record});
  }
  void tell_of_inits_end() {
    spawn::AnswerPacket ended;
    ended.kind = spawn::AnswerKind::kEnded;
    answer(ended);
  }

  // One turn of the loop: at once, or when something is there.
  void turn(bool wait = false) {
    std::vector<pollfd> fds;
    supervision_->add_interest(fds);
    const int patience = wait ? poll_timeout(supervision_->next_deadline()) : 0;
    ASSERT_GE(::poll(fds.data(), fds.size(), patience), 0);
    supervision_->step(fds);
  }
  // One that finds nothing ready but the time.
  void late_turn() { supervision_->step({}); }

  plan::Plan plan_;
  Init init_;
  bool spawner_silent_ = false;
  UniqueFd control_, report_;
  std::unique_ptr<Supervision> supervision_;
};

TEST_F(SupervisionTest, AnInterpreterThatIsNotThereIsAFailureAndAProgramAResult) {
  for (const char* const language : {"", "bash"}) {
    plan_.language = language;
    begin(0s);
    plan::Record failed;
    failed.kind = plan::RecordKind::kStepFailed;
    failed.step = plan::Step::kExec;
    failed.error = ENOENT;
    ASSERT_EQ(::write(report_.get(), &failed, sizeof failed), ssize_t{sizeof failed});
    tell(plan::RecordKind::kEnded, 127 << 8);
    turn();
    tell_of_inits_end();
    turn();
    ASSERT_TRUE(supervision_->ended());
    const Ending ending = supervision_->take_ending();
    EXPECT_EQ(ending.failure.has_value(), !plan_.language.empty());
    EXPECT_EQ(ending.err.total > 0, plan_.language.empty()) << "told once";
  }
}

TEST_F(SupervisionTest, AProgramThatEndedInTimeIsNoTimeoutThoughTheEndIsHeardOfLate) {
  begin(2900ms);
  turn();
  tell(plan::RecordKind::kEnded, kExitedWithSeven);
  turn();
  turn(true);  // until the wall time is over
  EXPECT_FALSE(supervision_->ended());
  tell_of_inits_end();
  turn();
  ASSERT_TRUE(supervision_->ended());
  const Ending ending = supervision_->take_ending();
  EXPECT_FALSE(ending.wall_expired);
  EXPECT_EQ(ending.payload_wait_status, kExitedWithSeven);
  EXPECT_FALSE(ending.failure);
}

TEST_F(SupervisionTest, WhatInitToldBeforeALimitCountsThoughItIsReadAfter) {
  begin(4s);
  tell(plan::RecordKind::kEnded, kExitedWithSeven);
  late_turn();
  tell_of_inits_end();
  turn();
  ASSERT_TRUE(supervision_->ended());
  EXPECT_FALSE(supervision_->take_ending().wall_expired);
}

TEST_F(SupervisionTest, AProgramThatRunsOnIsEndedAtItsLimit) {
  begin(4s);
  turn();
  pollfd killed{init_.pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&killed, 1, 10'000), 1);
  tell_of_inits_end();
  turn();
  ASSERT_TRUE(supervision_->ended());
  EXPECT_TRUE(supervision_->take_ending().wall_expired);
}

TEST_F(SupervisionTest, AProgramThatTheSpawnerLaunchesLateHasAllItsTime) {
  request(4s);
  turn();
  EXPECT_FALSE(supervision_->ended());
  launch();
  turn();
  EXPECT_GT(supervision_->next_deadline() - Clock::now(), 1s);
  tell(plan::RecordKind::kAboutToExec);
  tell(plan::RecordKind::kEnded, kExitedWithSeven);
  tell_of_inits_end();
  turn();
  ASSERT_TRUE(supervision_->ended());
  EXPECT_FALSE(supervision_->take_ending().wall_expired);
}

TEST_F(SupervisionTest, WhatInitEndedAtItsOwnDeadlineRanIntoTheLimit) {
  begin(2s);
  tell(plan::RecordKind::kWallLimit);
  tell_of_inits_end();
  turn();
  ASSERT_TRUE(supervision_->ended());
  const Ending ending = supervision_->take_ending();
  EXPECT_TRUE(ending.wall_expired);
  EXPECT_FALSE(ending.failure);
}

TEST_F(SupervisionTest, TheTimeOfARunEndsWithItsProgramByInitsClock) {
  for (const auto& [after_launch, total] : {std::pair{2s, 2s}, {std::chrono::seconds(1h), 10s}}) {
    const auto launched = Clock::now() - 10s;
    request(10s);
    launch();
    tell(plan::RecordKind::kAboutToExec);
    tell(plan::RecordKind::kEnded, kExitedWithSeven, launched + after_launch);
    tell_of_inits_end();
    turn();
    ASSERT_TRUE(supervision_->ended());
    const Ending ending = supervision_->take_ending();
    EXPECT_LE(ending.total - total, 1s);
    EXPECT_LE(total - ending.total, 1s);
    EXPECT_LE(ending.setup, ending.total) << "which was heard of late";
  }
}

TEST_F(SupervisionTest, WhatIsLeftOfARunIsKilledAtItsLimitThoughTheProgramHasEnded) {
  begin(4s);
  tell(plan::RecordKind::kEnded, kExitedWithSeven);
  turn();
  pollfd killed{init_.pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&killed, 1, 10'000), 1);
}

TEST_F(SupervisionTest, ASpawnerKnownToBeSilentIsNotWaitedForWhenTheRunEnds) {
  begin(2s);
  turn();
  spawner_silent_ = true;
  turn();
  EXPECT_FALSE(supervision_->ended()) << "the program runs on";
  tell(plan::RecordKind::kEnded, kExitedWithSeven);
  init_.end();
  turn();
  turn(true);
  ASSERT_TRUE(supervision_->ended());
  const Ending ending = supervision_->take_ending();
  ASSERT_TRUE(ending.failure);
  EXPECT_TRUE(spawn::is_spawner_silent(*ending.failure));
  EXPECT_NE(ending.failure->fix, "");
  EXPECT_FALSE(supervision_->take_control()) << "nor for its walkers";
}

TEST_F(SupervisionTest, ASpawnerThatFallsSilentWhileARunEndsIsSeenWithinASecond) {
  begin(2s);
  tell(plan::RecordKind::kEnded, kExitedWithSeven);
  turn();
  EXPECT_LE(supervision_->next_deadline() - Clock::now(), 1s);
}

TEST_F(SupervisionTest, TheLastWordOfASpawnerCountsThoughItHasFallenSilent) {
  begin(2s);
  tell(plan::RecordKind::kEnded, kExitedWithSeven);
  turn();
  tell_of_inits_end();
  spawner_silent_ = true;
  late_turn();
  ASSERT_TRUE(supervision_->ended());
  EXPECT_FALSE(supervision_->take_ending().failure);
}

}  // namespace
}  // namespace sbx::supervise
