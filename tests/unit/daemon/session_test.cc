// Who may use a session when: runs, uploads and files calls against each other.
#include "runtime/daemon/session.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "http/async/task_group.h"
#include "runtime/daemon/session_problems.h"
#include "tests/unit/daemon/session_ground.h"

namespace sbx::daemon {
namespace {

using async::Task;
using async::TaskGroup;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kNoWait = async::kNoDeadline;

class Holds : public ::testing::Test {
 public:  // for coroutines of the tests
  // What happens, in order.
  std::vector<std::string> told_;
  test::SessionGround ground_;
  SessionPtr session_ = ground_.create();

  template <typename T>
  static std::string code(const OrProblem<T>& held) {
    const auto* problem = std::get_if<http::Problem>(&held);
    return problem != nullptr ? problem->code : "held";
  }

  // Holds the session for a run until `over`, and tells.
  Task<void> run(std::string name, bool wait, async::Event& over,
                 async::Deadline deadline = kNoWait, const async::Cancellation* gone = nullptr) {
    auto held = co_await hold_for_run(session_, wait, deadline, gone);
    told_.push_back(name + " " + code(held));
    if (std::holds_alternative<Hold>(held)) (void)co_await over.wait(async::test::soon());
    told_.push_back(name + " over");
  }
  Task<void> read(std::string name, async::Event& over) {
    auto held = co_await hold_for_reading(session_);
    told_.push_back(name + " " + code(held));
    if (std::holds_alternative<Hold>(held)) (void)co_await over.wait(async::test::soon());
  }
  Task<void> change(std::string name, async::Event& over) {
    auto held = co_await hold_for_change(session_);
    told_.push_back(name + " " + code(held));
    if (std::holds_alternative<Hold>(held)) (void)co_await over.wait(async::test::soon());
  }
  [[nodiscard]] std::vector<std::string> take_told() { return std::exchange(told_, {}); }
};

TEST_F(Holds, OneRunAtATimeAndTheSecondIsRefusedOrWaits) {
  const auto scenario = [](Holds& t) -> Task<void> {
    async::Event over(t.ground_.loop);
    TaskGroup group(t.ground_.loop);
    group.spawn(t.run("first", false, over));
    co_await test::turns(t.ground_.loop);
    group.spawn(t.run("second", false, over));
    group.spawn(t.run("third", true, over));
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("first held", "second session_busy", "second over"));
    over.notify_all();
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("first over", "third held"));
    over.notify_all();
    (void)co_await group.join(async::test::soon());
  };
  ground_.run(scenario(*this));
}

TEST_F(Holds, RunsThatWaitComeInTheirOrderAndNobodyOvertakes) {
  const auto scenario = [](Holds& t) -> Task<void> {
    async::Event over(t.ground_.loop);
    TaskGroup group(t.ground_.loop);
    for (const char* name : {"a", "b", "c"}) group.spawn(t.run(name, true, over));
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("a held"));
    over.notify_all();
    group.spawn(t.run("hasty", false, over));
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("a over", "hasty session_busy", "hasty over", "b held"));
    over.notify_all();
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("b over", "c held"));
    over.notify_all();
    (void)co_await group.join(async::test::soon());
  };
  ground_.run(scenario(*this));
}

TEST_F(Holds, AWaitEndsWithItsDeadlineOrItsClientAndTheNextGoesOn) {
  const auto scenario = [](Holds& t) -> Task<void> {
    async::Event over(t.ground_.loop);
    async::Cancellation gone;
    TaskGroup group(t.ground_.loop);
    group.spawn(t.run("first", true, over));
    co_await test::turns(t.ground_.loop);
    group.spawn(t.run("late", true, over, async::Deadline::min()));
    group.spawn(t.run("gone", true, over, kNoWait, &gone));
    group.spawn(t.run("last", true, over));
    co_await test::turns(t.ground_.loop);
    // The client leaves in the same turn in which its turn comes.
    gone.cancel();
    over.notify_all();
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(),
                ElementsAre("first held", "late too_many_requests", "late over",
                            "gone too_many_requests", "gone over", "first over", "last held"));
    over.notify_all();
    (void)co_await group.join(async::test::soon());
  };
  ground_.run(scenario(*this));
}

TEST_F(Holds, OnlySoManyWait) {
  const auto scenario = [](Holds& t) -> Task<void> {
    async::Event over(t.ground_.loop);
    TaskGroup group(t.ground_.loop);
    group.spawn(t.run("first", true, over));
    co_await test::turns(t.ground_.loop);
    for (std::size_t i = 0; i < Session::kMaxWaiting; ++i) group.spawn(t.run("waits", true, over));
    co_await test::turns(t.ground_.loop);
    (void)t.take_told();
    group.spawn(t.run("one more", true, over));
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("one more too_many_requests", "one more over"));
    group.spawn(t.run("hasty", false, over));
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("hasty session_busy", "hasty over"));
    while (group.size() > 0) {
      over.notify_all();
      co_await test::turns(t.ground_.loop);
    }
  };
  ground_.run(scenario(*this));
}

// Who has asked to wait is not told to ask for it, and may try again (429).
TEST_F(Holds, AWaitInVainIsNoRoomAndNoConflict) {
  for (const http::Problem& problem :
       {session_queue_full(*session_), session_wait_over(*session_)}) {
    EXPECT_EQ(problem.status, 429);
    EXPECT_TRUE(problem.retry_after);
    EXPECT_THAT(problem.more,
                ElementsAre(std::pair<std::string, std::string>("budget", "session")));
    EXPECT_EQ(problem.fix.find("wait\": true"), std::string::npos);
  }
  EXPECT_EQ(session_busy(*session_).status, 409);
}

TEST_F(Holds, FilesCallsAreRefusedWhileARunIsOnAndARunWaitsForThem) {
  const auto scenario = [](Holds& t) -> Task<void> {
    async::Event over(t.ground_.loop);
    async::Event read_over(t.ground_.loop);
    TaskGroup group(t.ground_.loop);
    group.spawn(t.read("early", read_over));
    co_await test::turns(t.ground_.loop);
    group.spawn(t.run("run", false, over));
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("early held")) << "the run waits, though not told to";
    group.spawn(t.read("late", read_over));
    group.spawn(t.change("change", read_over));
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("late session_busy", "change session_busy"));
    read_over.notify_all();
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("run held"));
    over.notify_all();
    (void)co_await group.join(async::test::soon());
  };
  ground_.run(scenario(*this));
}

TEST_F(Holds, ReadersShareAndChangesComeOneByOneAndFirst) {
  const auto scenario = [](Holds& t) -> Task<void> {
    async::Event reads(t.ground_.loop);
    async::Event changes(t.ground_.loop);
    TaskGroup group(t.ground_.loop);
    group.spawn(t.read("r1", reads));
    group.spawn(t.read("r2", reads));
    co_await test::turns(t.ground_.loop);
    group.spawn(t.change("c1", changes));
    group.spawn(t.change("c2", changes));
    group.spawn(t.read("r3", reads));
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("r1 held", "r2 held"));
    reads.notify_all();
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("c1 held"));
    changes.notify_all();
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("c2 held"));
    changes.notify_all();
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("r3 held"));
    reads.notify_all();
    (void)co_await group.join(async::test::soon());
  };
  ground_.run(scenario(*this));
}

TEST_F(Holds, AnUploadKeepsRunsAwayAndNotFilesCalls) {
  const auto scenario = [](Holds& t) -> Task<void> {
    async::Event over(t.ground_.loop);
    TaskGroup group(t.ground_.loop);
    std::optional<UploadHold> upload(std::get<UploadHold>(UploadHold::take(t.session_)));
    group.spawn(t.run("refused", false, over));
    group.spawn(t.run("waits", true, over));
    group.spawn(t.change("change", over));
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("refused session_busy", "refused over", "change held"));
    over.notify_all();
    upload.reset();
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("waits held"));
    EXPECT_EQ(code(UploadHold::take(t.session_)), "session_busy");
    over.notify_all();
    (void)co_await group.join(async::test::soon());
  };
  ground_.run(scenario(*this));
}

TEST_F(Holds, OnlySoManyUploadsAreUnderWay) {
  std::vector<OrProblem<UploadHold>> held;
  for (std::uint32_t i = 0; i < Session::kMaxUploads; ++i) {
    held.push_back(UploadHold::take(session_));
    EXPECT_EQ(code(held.back()), "held");
  }
  EXPECT_EQ(code(UploadHold::take(session_)), "too_many_uploads");
  held.pop_back();
  EXPECT_EQ(code(UploadHold::take(session_)), "held");
}

TEST_F(Holds, UploadsReserveTheirRoomAndGiveItBack) {
  ASSERT_EQ(session_->record().work, 1U << 20);
  auto first = std::get<UploadHold>(UploadHold::take(session_));
  EXPECT_TRUE(first.reserve(600'000));
  EXPECT_TRUE(first.reserve(700'000)) << "instead of, not beside";
  {
    auto second = std::get<UploadHold>(UploadHold::take(session_));
    EXPECT_FALSE(second.reserve(400'000));
    EXPECT_TRUE(second.reserve(300'000));
    EXPECT_EQ(session_->reserved(), 1'000'000U);
  }
  EXPECT_EQ(session_->reserved(), 700'000U);
  EXPECT_TRUE(first.reserve((1U << 20)));
  EXPECT_FALSE(first.reserve((1U << 20) + 1));
  session_->set_size({.bytes = 1U << 19, .inodes = 3});
  EXPECT_FALSE(first.reserve((1U << 19) + 1));
  EXPECT_TRUE(first.reserve(1U << 19));
}

TEST_F(Holds, EndWithTheSessionForThoseThatWait) {
  const auto scenario = [](Holds& t) -> Task<void> {
    async::Event over(t.ground_.loop);
    TaskGroup group(t.ground_.loop);
    group.spawn(t.run("first", true, over));
    co_await test::turns(t.ground_.loop);
    group.spawn(t.run("waits", true, over));
    co_await test::turns(t.ground_.loop);
    EXPECT_FALSE(t.session_->deleted().cancelled());
    t.session_->end(std::nullopt);
    EXPECT_TRUE(t.session_->deleted().cancelled()) << "what cancels the run";
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("first held", "waits session_deleted", "waits over"));
    group.spawn(t.run("late", true, over));
    group.spawn(t.read("read", over));
    group.spawn(t.change("change", over));
    co_await test::turns(t.ground_.loop);
    EXPECT_THAT(t.take_told(), ElementsAre("late session_deleted", "late over",
                                           "read session_deleted", "change session_deleted"));
    EXPECT_EQ(code(UploadHold::take(t.session_)), "session_deleted");
    EXPECT_TRUE(t.session_->in_use());
    over.notify_all();
    co_await t.session_->wait_unused();
    EXPECT_FALSE(t.session_->in_use());
    (void)co_await group.join(async::test::soon());
  };
  ground_.run(scenario(*this));
}

TEST_F(Holds, AreUsesAndMoveTheIdleEnd) {
  const SessionTime before = session_->idle_end();
  ground_.now += std::chrono::minutes(10);
  const auto scenario = [](Holds& t) -> Task<void> {
    auto held = co_await hold_for_reading(t.session_);
    t.ground_.now += std::chrono::minutes(10);  // a long use counts to its end
  };
  EXPECT_FALSE(session_->take_used());
  ground_.run(scenario(*this));
  EXPECT_EQ(session_->idle_end(), before + std::chrono::minutes(20));
  EXPECT_TRUE(session_->take_used());
}

TEST_F(Holds, KeepAnUpperBoundOfASizeThatCannotBeCounted) {
  session_->set_size({.bytes = 8192, .inodes = 3});
  session_->add_to_size({.bytes = 4096, .inodes = 1});
  EXPECT_TRUE(session_->size_is_exact());
  EXPECT_EQ(session_->size()->bytes, 12288U);
  session_->add_to_size({.bytes = 0, .inodes = 0, .exact = false});
  EXPECT_FALSE(session_->size_is_exact());
  EXPECT_EQ(session_->size()->bytes, 12288U);
  session_->add_to_size({.bytes = -1'000'000, .inodes = -100});
  EXPECT_EQ(session_->size()->bytes, 0U) << "never below nothing";
}

}  // namespace
}  // namespace sbx::daemon
