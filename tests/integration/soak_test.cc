// A thousand runs of all kinds, a hundred of them with sbx-run killed in the middle; one more run
// then finds and removes what the dead left, and nothing is left. bench/soak is the long form.
#include "tests/integration/soak.h"

#include <gtest/gtest.h>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

class SoakTest : public SandboxTest {};
SBX_AS_BOTH_CALLERS(SoakTest);

TEST_P(SoakTest, AThousandRunsWithAHundredKilledLeaveNothing) {
  const StartRun start = [this](const std::vector<std::string>& words) {
    return std::make_unique<Process>(command(words), options());
  };
  const SoakResult result = soak(start, {.directory = directory().path()});
  EXPECT_EQ(result.finished + result.killed, 1000);
  EXPECT_EQ(result.killed, 100);
  EXPECT_EQ(result.unexpected(), 0);
  for (const std::string& complaint : result.complaints) ADD_FAILURE() << complaint;
  EXPECT_EQ(run({"-c", "print('after')"}).out, "after\n");
  // TearDown looks for what is left.
}

}  // namespace
}  // namespace sbx::test
