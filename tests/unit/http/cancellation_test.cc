// Cancellation: raised once, for good, and passed on to children.
#include "http/async/cancellation.h"

#include <memory>

#include "http/async/event.h"
#include "tests/unit/http/on_loop.h"

namespace sbx::async {
namespace {

using test::run_on;
using test::soon;

Wake wake_of_wait_on(Loop& loop, const Cancellation& cancellation) {
  Wake wake = Wake::kReady;
  run_on(loop, [](Loop& on, const Cancellation& by, Wake& out) -> Task<void> {
    out = co_await on.sleep_until(soon(), &by);
  }(loop, cancellation, wake));
  return wake;
}

TEST(Cancellation, EndsAWaitThatBeginsAfterIt) {
  Loop loop;
  Cancellation cancellation;
  cancellation.cancel();
  cancellation.cancel();
  EXPECT_EQ(wake_of_wait_on(loop, cancellation), Wake::kCancelled);
}

TEST(Cancellation, EndsAWaitThatIsOn) {
  Loop loop;
  Cancellation cancellation;
  loop.post([&] { cancellation.cancel(); });
  EXPECT_EQ(wake_of_wait_on(loop, cancellation), Wake::kCancelled);
}

TEST(Cancellation, AChildIsRaisedByAnyOfItsParentsAndNotTheOtherWayRound) {
  Cancellation left;
  Cancellation right;
  Cancellation child{&left, &right};
  Cancellation grandchild{&child};
  right.cancel();
  EXPECT_TRUE(child.cancelled());
  EXPECT_TRUE(grandchild.cancelled());
  EXPECT_FALSE(left.cancelled());
  left.cancel();
}

TEST(Cancellation, AChildOfARaisedParentIsBornRaised) {
  Cancellation parent;
  parent.cancel();
  const Cancellation child{&parent};
  EXPECT_TRUE(child.cancelled());
}

TEST(Cancellation, AChildThatIsGoneIsForgotten) {
  Cancellation parent;
  auto child = std::make_unique<Cancellation>(std::initializer_list<const Cancellation*>{&parent});
  child.reset();
  parent.cancel();
  EXPECT_TRUE(parent.cancelled());
}

}  // namespace
}  // namespace sbx::async
