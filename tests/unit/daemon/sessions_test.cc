// The life of sessions: who sees them, how many there may be, when they expire, what a restart
// finds.
#include "runtime/daemon/sessions.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "runtime/daemon/session_problems.h"
#include "tests/unit/daemon/session_ground.h"

namespace sbx::daemon {
namespace {

using async::Task;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using test::SessionGround;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

std::size_t entries_of(const std::string& path) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path)) ++count;
  return count;
}

TEST(Registry, ShowsASessionToItsOwnerAndToRootAlone) {
  SessionGround ground;
  const std::string id = ground.create(1000)->record().id;
  EXPECT_EQ(ground.find(1000, id), "");
  EXPECT_EQ(ground.find(0, id), "");
  EXPECT_EQ(ground.find(1001, id), "session_not_found");
  const auto nobody = ground.sessions().find({}, id);
  EXPECT_TRUE(std::holds_alternative<http::Problem>(nobody));
  EXPECT_THAT(ground.sessions().all_of(SessionGround::peer(1000)), SizeIs(1));
  EXPECT_THAT(ground.sessions().all_of(SessionGround::peer(1001)), SizeIs(0));
}

TEST(Registry, AnswersInTheSameWayForNoSessionAndSomebodyElses) {
  SessionGround ground;
  const std::string id = ground.create(1000)->record().id;
  for (const std::string& asked : {id, std::string("0000000000000000"), std::string(),
                                   std::string("../x"), std::string(300, 'a')}) {
    const auto found = ground.sessions().find(SessionGround::peer(1001), asked);
    ASSERT_TRUE(std::holds_alternative<http::Problem>(found));
    EXPECT_EQ(std::get<http::Problem>(found).status, 404);
    EXPECT_LT(std::get<http::Problem>(found).detail.size(), 400U);
  }
}

TEST(Registry, BoundsTheSessionsOfOneAndOfAll) {
  SessionGround ground({.max = 3, .max_per_peer = 2});
  const auto refusal = [&](uid_t uid) {
    const SessionWish wish{.work = 4096, .work_inodes = 2, .idle = minutes(10), .age = hours(1)};
    auto made = ground.result(ground.sessions().create(SessionGround::peer(uid), wish));
    const auto* problem = std::get_if<http::Problem>(&made);
    return problem != nullptr ? *problem : http::Problem{.code = "made"};
  };
  EXPECT_EQ(refusal(1).code, "made");
  EXPECT_EQ(refusal(1).code, "made");
  const http::Problem own = refusal(1);
  EXPECT_EQ(own.code, "too_many_sessions");
  EXPECT_EQ(own.status, 429);
  EXPECT_THAT(own.more, Contains(Pair("budget", "sessions.max_per_peer")));
  EXPECT_EQ(own.retry_after, seconds(600)) << "when one of them expires";
  EXPECT_EQ(refusal(2).code, "made");
  EXPECT_THAT(refusal(3).more, Contains(Pair("budget", "sessions.max")));
}

TEST(Registry, BoundsTheSessionsThatAreBeingMadeToo) {
  SessionGround ground({.max = 10, .max_per_peer = 1});
  const auto scenario = [](SessionGround& g) -> Task<void> {
    async::TaskGroup group(g.loop);
    int made = 0;
    for (int i = 0; i < 5; ++i) {
      group.spawn([](SessionGround& at, int& count) -> Task<void> {
        const SessionWish wish{.work = 4096, .work_inodes = 2, .idle = hours(1), .age = hours(1)};
        auto session = co_await at.sessions().create(SessionGround::peer(7), wish);
        count += std::holds_alternative<SessionPtr>(session) ? 1 : 0;
      }(g, made));
    }
    (void)co_await group.join(async::test::soon());
    EXPECT_EQ(made, 1);
  };
  ground.run(scenario(ground));
}

TEST(Registry, TellsWhatTheHostLacksWhenNoIdIsLeft) {
  SessionGround ground;
  ground.ids_left = false;
  const SessionWish wish{.work = 4096, .work_inodes = 2, .idle = hours(1), .age = hours(1)};
  auto made = ground.result(ground.sessions().create(SessionGround::peer(1), wish));
  ASSERT_TRUE(std::holds_alternative<http::Problem>(made));
  EXPECT_EQ(std::get<http::Problem>(made).status, 503);
  EXPECT_EQ(ground.sessions().count(), 0U);
}

TEST(Registry, FindsItsSessionsAfterAKill) {
  SessionGround ground;
  const SessionPtr session = ground.create(1000);
  const SessionRecord record = session->record();
  ground.now += minutes(10);
  ground.run([](SessionPtr s) -> Task<void> { (void)co_await hold_for_reading(s); }(session));
  ground.run(ground.sessions().tend());
  ground.start();
  const auto found = ground.sessions().find(SessionGround::peer(1000), record.id);
  ASSERT_TRUE(std::holds_alternative<SessionPtr>(found));
  EXPECT_EQ(std::get<SessionPtr>(found)->record(), record);
  EXPECT_EQ(std::get<SessionPtr>(found)->last_used(), ground.now) << "the use was noted";
}

TEST(Registry, BindsASessionToCeilingsThatWereLoweredSince) {
  SessionGround ground;
  const SessionRecord made = ground.create(1000)->record();
  ground.start({.work = made.work / 2, .work_inodes = made.work_inodes - 1});
  const auto found = ground.sessions().find(SessionGround::peer(1000), made.id);
  ASSERT_TRUE(std::holds_alternative<SessionPtr>(found));
  EXPECT_EQ(std::get<SessionPtr>(found)->record().work, made.work / 2);
  EXPECT_EQ(std::get<SessionPtr>(found)->record().work_inodes, made.work_inodes - 1);
  ground.start(SessionBounds{});
  const auto again = ground.sessions().find(SessionGround::peer(1000), made.id);
  ASSERT_TRUE(std::holds_alternative<SessionPtr>(again));
  EXPECT_EQ(std::get<SessionPtr>(again)->record(), made) << "its own quota, when they are raised";
}

TEST(Registry, KeepsThePayloadsIdAndTakesAnotherWhereItIsTaken) {
  SessionGround ground;
  const std::uint32_t index = ground.create(1)->record().payload_id;
  EXPECT_GT(index, 0U);
  EXPECT_EQ(ground.create(1)->record().payload_id, index + 1) << "one of its own each";
  ground.start();
  for (const SessionPtr& session : ground.sessions().all_of(SessionGround::peer(1))) {
    EXPECT_EQ(session->payload_id(), session->record().payload_id);
  }
}

TEST(Registry, LeavesASessionWithoutAnIdAloneOnTheDisk) {
  SessionGround ground;
  const std::string id = ground.create(1)->record().id;
  ground.ids_left = false;
  ground.start();
  EXPECT_EQ(ground.find(1, id), "session_not_found");
  ground.ids_left = true;
  ground.start();
  EXPECT_EQ(ground.find(1, id), "");
}

TEST(Deleting, RemovesTheFilesAndAnswersNotFoundAfterwards) {
  SessionGround ground;
  const SessionPtr session = ground.create(1);
  EXPECT_FALSE(std::get<bool>(ground.result(ground.sessions().remove(session))));
  EXPECT_EQ(ground.find(1, session->record().id), "session_not_found");
  EXPECT_EQ(ground.sessions().count(), 0U);
  EXPECT_EQ(entries_of(ground.path()), 2U) << ".lock and expired/";
  const auto again = ground.result(ground.sessions().remove(session));
  EXPECT_EQ(std::get<http::Problem>(again).code, "session_not_found");
}

TEST(Deleting, WaitsForTheRunThatItCancels) {
  SessionGround ground;
  const SessionPtr session = ground.create(1);
  const auto scenario = [](SessionGround& g, SessionPtr s) -> Task<void> {
    auto held = co_await hold_for_run(s, false, async::kNoDeadline, nullptr);
    std::optional<Hold> hold(std::get<Hold>(std::move(held)));
    async::TaskGroup group(g.loop);
    bool removed = false;
    group.spawn([](SessionGround& at, SessionPtr of, bool& done) -> Task<void> {
      auto gone = co_await at.sessions().remove(of);
      EXPECT_TRUE(std::get<bool>(gone)) << "it says that a run was cancelled";
      done = true;
    }(g, s, removed));
    co_await test::turns(g.loop);
    EXPECT_TRUE(s->deleted().cancelled());
    EXPECT_FALSE(removed);
    EXPECT_EQ(g.find(1, s->record().id), "session_not_found") << "for everybody else it is gone";
    hold.reset();
    (void)co_await group.join(async::test::soon());
    EXPECT_TRUE(removed);
  };
  ground.run(scenario(ground, session));
}

// One who uses it longer than that holds nobody up, and the session is back after him.
TEST(Deleting, WaitsNoLongerThanFiveSecondsAlsoWhereItFails) {
  SessionGround ground;
  const SessionPtr session = ground.create(1);
  const std::string id = session->record().id;
  std::filesystem::create_directories(ground.path() + "/.gone-" + id + "/in-the-way");
  const auto scenario = [](SessionGround& g, SessionPtr s) -> Task<void> {
    auto held = co_await hold_for_reading(s);
    std::optional<Hold> hold(std::get<Hold>(std::move(held)));
    const auto began = std::chrono::steady_clock::now();
    auto gone = co_await g.sessions().remove(s);
    EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(15));
    EXPECT_TRUE(std::holds_alternative<http::Problem>(gone));
    EXPECT_TRUE(s->ending());
    hold.reset();
    co_await test::turns(g.loop);
    EXPECT_EQ(g.find(1, s->record().id), "");
  };
  ground.run(scenario(ground, session));
}

TEST(Expiring, ByIdlenessAndByAgeIsTypedWithWhenAndWhy) {
  SessionGround ground;
  const std::string idle = ground.create(1, minutes(10), hours(24))->record().id;
  const std::string old = ground.create(1, hours(24), hours(24))->record().id;
  ground.now += minutes(10) - seconds(1);
  ground.run(ground.sessions().tend());
  EXPECT_EQ(ground.find(1, idle), "");
  ground.now += seconds(1);
  EXPECT_EQ(ground.find(1, idle), "session_expired") << "at once, before anybody has tended";
  ground.run(ground.sessions().tend());
  const auto found = ground.sessions().find(SessionGround::peer(1), idle);
  const auto& problem = std::get<http::Problem>(found);
  EXPECT_EQ(problem.status, 410);
  EXPECT_THAT(problem.more, Contains(Pair("reason", "idle")));
  EXPECT_THAT(problem.more, Contains(Pair("expired_at", session_time_text(ground.now))));
  EXPECT_EQ(ground.find(2, idle), "session_not_found") << "for others it never was";
  EXPECT_EQ(ground.find(1, old), "");
  ground.now += hours(24);
  ground.run(ground.sessions().tend());
  const auto aged = ground.sessions().find(SessionGround::peer(1), old);
  EXPECT_THAT(std::get<http::Problem>(aged).more, Contains(Pair("reason", "age")));
  EXPECT_EQ(ground.sessions().count(), 0U);
  EXPECT_EQ(entries_of(ground.path()), 2U) << "their files are gone";
}

TEST(Expiring, IsRememberedAfterAKillAndForgottenAfterAWeek) {
  SessionGround ground;
  const std::string id = ground.create(1, minutes(10))->record().id;
  ground.now += minutes(11);
  ground.run(ground.sessions().tend());
  ground.start();
  EXPECT_EQ(ground.find(1, id), "session_expired");
  ground.now += kTombstoneTime;
  ground.run(ground.sessions().tend());
  EXPECT_EQ(ground.find(1, id), "session_not_found");
  EXPECT_EQ(entries_of(ground.path() + "/expired"), 0U);
}

TEST(Deleting, CancelsNoRunWhereTheDirectoryIsAway) {
  SessionGround ground;
  const SessionPtr session = ground.create(1);
  const auto scenario = [](SessionGround& g, SessionPtr s) -> Task<void> {
    auto held = co_await hold_for_run(s, false, async::kNoDeadline, nullptr);
    const Hold hold = std::get<Hold>(std::move(held));
    std::filesystem::rename(g.path(), g.path() + "-away");
    auto gone = co_await g.sessions().remove(s);
    EXPECT_EQ(std::get<http::Problem>(gone).code, "host_lacks");
    EXPECT_FALSE(s->deleted().cancelled());
    EXPECT_FALSE(s->ending());
    std::filesystem::rename(g.path() + "-away", g.path());
  };
  ground.run(scenario(ground, session));
}

TEST(Expiring, WaitsForADirectoryThatIsAwayAndSaysItOnce) {
  SessionGround ground;
  const std::string id = ground.create(1, minutes(10))->record().id;
  ground.now += minutes(11);
  const std::string away = ground.path() + "-away";
  std::filesystem::rename(ground.path(), away);
  ::testing::internal::CaptureStderr();
  for (int time = 0; time < 3; ++time) ground.run(ground.sessions().tend());
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("move it back"));
  EXPECT_EQ(log.find('\n'), log.size() - 1) << "one line: " << log;
  EXPECT_EQ(entries_of(away + "/expired"), 0U);
  EXPECT_EQ(ground.find(1, id), "session_expired");
  std::filesystem::rename(away, ground.path());
  ::testing::internal::CaptureStderr();
  ground.run(ground.sessions().tend());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("can be made again"));
  EXPECT_EQ(ground.sessions().count(), 0U);
  EXPECT_EQ(entries_of(ground.path() + "/expired"), 1U);
}

TEST(Expiring, WaitsForAUseUnderWay) {
  SessionGround ground;
  const SessionPtr session = ground.create(1, minutes(10), hours(1));
  const auto scenario = [](SessionGround& g, SessionPtr s) -> Task<void> {
    auto held = co_await hold_for_run(s, false, async::kNoDeadline, nullptr);
    std::optional<Hold> hold(std::get<Hold>(std::move(held)));
    g.now += minutes(30);
    co_await g.sessions().tend();
    EXPECT_EQ(g.find(1, s->record().id), "") << "a run is a use, however long";
    g.now += hours(1);
    co_await g.sessions().tend();
    EXPECT_EQ(g.sessions().count(), 1U) << "the run goes on, past the age too";
    EXPECT_EQ(g.find(1, s->record().id), "session_expired") << "and nothing new begins";
    hold.reset();
    co_await g.sessions().tend();
    EXPECT_EQ(g.sessions().count(), 0U);
  };
  ground.run(scenario(ground, session));
}

TEST(Expiring, RemembersSoManyOfOneOwnerAndDoesNotForgetThoseOfOthers) {
  SessionGround ground({.max = 1000, .max_per_peer = 1000});
  const std::string others = ground.create(2, seconds(1))->record().id;
  ground.now += seconds(2);
  ground.run(ground.sessions().tend());
  std::vector<std::string> own;
  for (std::size_t i = 0; i < kMaxTombstonesPerOwner + 3; ++i) {
    own.push_back(ground.create(1, seconds(1))->record().id);
    ground.now += seconds(2);
    ground.run(ground.sessions().tend());
  }
  EXPECT_EQ(ground.find(1, own[2]), "session_not_found");
  EXPECT_EQ(ground.find(1, own[3]), "session_expired");
  EXPECT_EQ(ground.find(1, own.back()), "session_expired");
  EXPECT_EQ(ground.find(2, others), "session_expired");
  EXPECT_EQ(entries_of(ground.path() + "/expired"), kMaxTombstonesPerOwner + 1);
}

TEST(Expiring, IsTriedAgainWhenTheDiskRefuses) {
  SessionGround ground;
  const std::string id = ground.create(1, minutes(10))->record().id;
  // Not by modes, which root does not feel: no file replaces a directory.
  std::filesystem::create_directories(ground.path() + "/expired/" + id + "/in the way");
  ground.now += minutes(11);
  ground.run(ground.sessions().tend());
  EXPECT_EQ(ground.find(1, id), "session_expired");
  EXPECT_EQ(ground.sessions().count(), 1U);
  std::filesystem::remove_all(ground.path() + "/expired/" + id);
  ground.run(ground.sessions().tend());
  EXPECT_EQ(ground.sessions().count(), 0U);
  EXPECT_EQ(ground.find(1, id), "session_expired");
}

TEST(Measuring, HappensOnceAndAfterWhatCannotBeCounted) {
  SessionGround ground;
  const SessionPtr session = ground.create(1);
  EXPECT_TRUE(session->size_is_exact());
  std::filesystem::create_directory(ground.path() + "/" + session->record().id + "/tree/d");
  EXPECT_FALSE(ground.result(ground.sessions().measure(session)));
  EXPECT_EQ(session->size()->inodes, 1U) << "known already";
  session->add_to_size({.exact = false});
  EXPECT_FALSE(ground.result(ground.sessions().measure(session)));
  EXPECT_EQ(session->size()->inodes, 2U);
}

}  // namespace
}  // namespace sbx::daemon
