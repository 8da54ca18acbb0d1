// The arena itself: each layer can be switched off, and what then is seen is what it protected.
#include "tests/adversarial/arena.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cerrno>

#include "tests/adversarial/throw_away.h"

namespace sbx::test {
namespace {

using cli::Observation;
using policy::Layer;

class ArenaTest : public AdversarialTest {};

TEST_F(ArenaTest, RunsOneActInsideAndTellsHowItWasAnswered) {
  const Observation seen = arena().attack("no_new_privs");
  EXPECT_TRUE(seen.answered) << seen.trouble;
  EXPECT_EQ(seen.value, "1");
  EXPECT_EQ(arena().attack("chroot").sys_errno, EPERM);
  EXPECT_EQ(arena().attack("mount").hostile_syscall, "mount");
}

TEST_F(ArenaTest, TakesAnActThatDoesNotExistForTrouble) {
  const Observation seen = arena().attack("no such act");
  EXPECT_FALSE(seen.answered);
  EXPECT_NE(seen.trouble, "");
}

TEST_F(ArenaTest, RunsABoxWithoutAnyLayer) {
  const Observation seen = arena().attack("no_new_privs", "", bare());
  EXPECT_TRUE(seen.answered) << seen.trouble;
  EXPECT_EQ(seen.value, "0");
  EXPECT_EQ(arena().attack("seccomp", "", bare()).value, "0");
  EXPECT_EQ(arena().attack("capabilities", "", bare()).value, "some");
  EXPECT_EQ(arena().attack("mount", "", bare()).sys_errno, 0);
}

TEST_F(ArenaTest, RunsABoxWithOneLayerAloneAndWithAllButOne) {
  for (const Layer layer : switchable_layers()) {
    const Observation alone = arena().attack("no_new_privs", "", only(layer));
    EXPECT_TRUE(alone.answered) << policy::layer_name(layer) << ": " << alone.trouble;
    EXPECT_EQ(alone.value, layer == Layer::kNoNewPrivs ? "1" : "0") << policy::layer_name(layer);
    const Observation others = arena().attack("no_new_privs", "", without(layer));
    EXPECT_TRUE(others.answered) << policy::layer_name(layer) << ": " << others.trouble;
    EXPECT_EQ(others.value, layer == Layer::kNoNewPrivs ? "0" : "1") << policy::layer_name(layer);
  }
}

TEST_F(ArenaTest, DescriptorsAreClosedBeforeTheExec) {
  Weakening kept;
  kept.weakened = plan::step_bit(plan::Step::kCloseDescriptors);
  EXPECT_EQ(arena().attack("descriptors").value, "0");
  EXPECT_NE(arena().attack("descriptors", "", kept).value, "0") << "the control";
}

TEST_F(ArenaTest, ThrowsAControlAwayWithEverythingItStarted) {
  const std::string program = std::string(SBX_TEST_PROGRAMS) + "/unkillable";
  ThrowAwayLimits limits;
  limits.patience = std::chrono::seconds(2);
  const auto ended = run_thrown_away(arena().ground(), program, {}, limits);
  ASSERT_TRUE(ended) << to_string(ended.error());
  EXPECT_TRUE(ended->timed_out);
  EXPECT_TRUE(WIFSIGNALED(ended->status));
}

TEST_F(ArenaTest, SaysThatAControlWasNotRun) {
  const auto ended = run_thrown_away(arena().ground(), "/etc/passwd", {});
  ASSERT_FALSE(ended);
  EXPECT_THAT(to_string(ended.error()), ::testing::HasSubstr("execute"));
}

}  // namespace
}  // namespace sbx::test
