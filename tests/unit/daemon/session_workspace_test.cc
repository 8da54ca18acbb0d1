// A session's tree as a run's workspace: whether it is saved when the run is over.
#include "runtime/daemon/session_workspace.h"

#include <chrono>
#include <utility>

#include "tests/unit/daemon/session_ground.h"

namespace sbx::daemon {
namespace {

using async::Task;
using std::chrono::hours;
using test::SessionGround;

TEST(SessionWorkspaces, PastTheGreatestAgeOutliveTheirRunUnsavedAndSaySo) {
  SessionGround ground;
  const SessionPtr session = ground.create(1, hours(1), hours(1));
  const auto scenario = [](SessionGround& g, SessionPtr s) -> Task<void> {
    auto held = co_await hold_for_run(s, false, async::kNoDeadline, nullptr);
    auto made = SessionWorkspace::make(g.sessions(), s, std::get<Hold>(std::move(held)));
    SessionWorkspace& workspace = **made;
    EXPECT_TRUE(workspace.wants_save()) << "control: before";
    g.now += hours(2);
    co_await g.sessions().tend();
    EXPECT_EQ(g.sessions().count(), 1U) << "the run is let end";
    EXPECT_FALSE(workspace.wants_save());
    const auto saved = workspace.saved();
    EXPECT_TRUE(saved);
    if (!saved) co_return;
    EXPECT_FALSE(saved->saved);
    EXPECT_EQ(saved->reason, "the session reached its greatest age");
    EXPECT_EQ(g.find(1, s->record().id), "session_expired");
    co_await g.sessions().tend();
    EXPECT_EQ(g.sessions().count(), 0U) << "nothing holds it any more";
  };
  ground.run(scenario(ground, session));
}

}  // namespace
}  // namespace sbx::daemon
