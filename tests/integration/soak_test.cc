// A thousand mixed runs, a hundred of them with sbx-run killed in the middle; one more run then
// finds and removes what the dead left, and nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

class Soak : public SandboxTest {};
INSTANTIATE_TEST_SUITE_P(Callers, Soak, ::testing::Values(Caller::kSelf, Caller::kUser),
                         caller_name);

constexpr int kRuns = 1000;
constexpr int kKillEvery = 10;
constexpr std::size_t kAtOnce = 4;

struct Kind {
  std::vector<std::string> words;
  int exit_code;
};

// Cheap ones: an interpreter costs more than everything else in a run.
const std::array kKinds = {
    Kind{{"--", "/bin/true"}, 0},
    Kind{{"--", "/bin/sh", "-c", "exit 3"}, 3},
    Kind{{"--", "/bin/sh", "-c", "echo x > /output/x; echo y > /work/y; ln -s / /output/l"}, 0},
    Kind{{"--", "/bin/sh", "-c", "sleep 600 & setsid sleep 600 & exit 0"}, 0},
    Kind{{"-t", "0.2", "--", "/bin/sleep", "600"}, 124},
    Kind{{"--", "/bin/sh", "-c", "kill -TERM $$"}, 143},
    Kind{{"-l", "bash", "-c", "head -c 1000000 /dev/zero"}, 0},
    Kind{{"--pids", "4", "--", "/bin/sh", "-c", "for i in 1 2 3 4 5; do sleep 9 & done; :"}, -1},
};

TEST_P(Soak, AThousandRunsWithAHundredKilledLeaveNothing) {
  std::mt19937 random(20240607);  // the same order each time
  std::uniform_int_distribution<std::size_t> kind(0, kKinds.size() - 1);
  std::uniform_int_distribution<int> moment(0, 30);
  std::deque<std::pair<std::unique_ptr<Process>, int>> running;
  const auto settle = [&running] {
    const int expected = running.front().second;
    const Finished finished = running.front().first->finish(std::chrono::seconds(60));
    running.pop_front();
    if (expected >= 0) {
      EXPECT_EQ(finished.exit_code, expected) << finished.err;
    }
  };
  const auto kill_in_the_middle = [&] {
    Process process(command({"--", "/bin/sh", "-c", "sleep 600 & sleep 600"}), options());
    // Any moment is right: each hits another step of the run.
    std::this_thread::sleep_for(std::chrono::milliseconds(moment(random)));
    process.signal(SIGKILL);
    EXPECT_EQ(process.finish().signal, SIGKILL);
  };
  for (int i = 0; i < kRuns; ++i) {
    if (i % kKillEvery == 0) {
      kill_in_the_middle();
      continue;
    }
    if (running.size() == kAtOnce) settle();
    const Kind& chosen = kKinds[kind(random)];
    running.emplace_back(std::make_unique<Process>(command(chosen.words), options()),
                         chosen.exit_code);
  }
  while (!running.empty()) settle();
  EXPECT_EQ(run({"-c", "print('after')"}).out, "after\n");
  // TearDown looks for what is left.
}

}  // namespace
}  // namespace sbx::test
