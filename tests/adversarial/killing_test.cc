// Programs that do not want to end, do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::Contains;

class Killing : public SandboxTest {
 protected:
  // The words that run one of tests/programs inside.
  static std::vector<std::string> inside(std::vector<std::string> flags, const std::string& name,
                                         const std::vector<std::string>& args = {}) {
    flags.insert(flags.end(),
                 {"--input", std::string(SBX_TEST_PROGRAMS) + "/" + name, "--", "/input/" + name});
    flags.insert(flags.end(), args.begin(), args.end());
    return flags;
  }
};
SBX_AS_BOTH_CALLERS(Killing);

TEST_P(Killing, DeafDaemonsDieWhenTheMainProgramEnds) {
  const json result = run_json(inside({"-t", "20"}, "daemons"));
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_EQ(result["stdout"], "left\n");
  EXPECT_LT(result["duration_seconds"].get<double>(), 10.0);
  EXPECT_THAT(note_codes(result), Contains("background_killed"));
}

TEST_P(Killing, AForkBombEndsOnTime) {
  const json result = run_json(inside({"-t", "1"}, "fork_bomb"));
  EXPECT_EQ(result["status"], "timeout") << result.dump();
  EXPECT_LT(result["duration_seconds"].get<double>(), 3.0);
  EXPECT_EQ(result["usage"]["pids_peak"], 64);
  EXPECT_THAT(note_codes(result), Contains("pids"));
}

TEST_P(Killing, AHogOfSeveralProcessesDiesAsOne) {
  const json result = run_json(inside({"--memory", "64M", "-t", "20"}, "memory_hog", {"4"}));
  EXPECT_EQ(result["status"], "oom") << result.dump();
  EXPECT_EQ(result["exit_code"], 137);
}

TEST_P(Killing, AProgramThatStopsEverythingEndsOnTime) {
  const json result = run_json(inside({"-t", "1"}, "unkillable"));
  EXPECT_EQ(result["status"], "timeout") << result.dump();
  EXPECT_EQ(result["stdout"], "up\n");
  EXPECT_LT(result["duration_seconds"].get<double>(), 2.5);
}

TEST_P(Killing, NothingLivesOnWhenTheRunnerIsKilled) {
  Process process(command(inside({"-t", "60"}, "unkillable")), options());
  ASSERT_TRUE(process.wait_for_output("up\n", std::chrono::seconds(20)));
  process.signal(SIGKILL);
  EXPECT_EQ(process.finish().signal, SIGKILL);
  // What a dead runner cannot remove itself is removed by the next.
  EXPECT_EQ(run({"--", "/bin/true"}).exit_code, 0);
}

}  // namespace
}  // namespace sbx::test
