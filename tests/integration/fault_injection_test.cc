// Every step of the child made to fail, and every process of ours killed: a clear error each time,
// the next run as good as ever, and nothing left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/integration/breakable_sandbox.h"
#include "tests/integration/own_ground.h"

namespace sbx::test {
namespace {

using collect::Outcome;
using collect::Status;
using plan::Step;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What an injected failure says: an errno that no step gives by itself.
constexpr int kInjected = ENOTRECOVERABLE;

// Needs every step: code and an input to fill, something to say.
plan::Request script(std::string code = "echo ran") {
  plan::Request request;
  request.language = "bash";
  request.code = std::move(code);
  request.files.push_back({"data", "x"});
  return request;
}

plan::Request quick() {
  plan::Request request;
  request.argv = {"/bin/true"};
  return request;
}

// All steps that a failure can be injected into: before kSession there is no plan yet that could
// say so (tests/unit/spawn has that case).
std::vector<Step> all_steps() {
  std::vector<Step> steps;
  for (Step step = Step::kSession; step <= Step::kExec;
       step = static_cast<Step>(static_cast<std::uint32_t>(step) + 1)) {
    steps.push_back(step);
  }
  return steps;
}

policy::LayerReport layer_of(const Outcome& outcome, const std::string& name) {
  const auto found = std::find_if(outcome.layers.begin(), outcome.layers.end(),
                                  [&](const auto& report) { return report.name == name; });
  return found == outcome.layers.end() ? policy::LayerReport{} : *found;
}

class FaultTest : public ::testing::Test {
 protected:
  // Fails or skips the test when there is none.
  void open(const std::string& rootfs = "host") {
    auto opened = BreakableSandbox::open(ground_.config(), rootfs);
    if (!opened && opened.error().code == ErrorCode::kHost) {
      GTEST_SKIP() << to_string(opened.error()) << "; " << opened.error().fix;
    }
    ASSERT_TRUE(opened) << to_string(opened.error());
    sandbox_ = *std::move(opened);
  }
  // An outcome that says sandbox_error without a step when there was none at all.
  Outcome run(const plan::Request& request, plan::StepMask failing = 0) {
    auto outcome = sandbox_->run(request, failing);
    EXPECT_TRUE(outcome) << to_string(outcome.error());
    return outcome ? *std::move(outcome) : Outcome{};
  }
  void TearDown() override {
    sandbox_.reset();
    const Things left = ground_.leaked();
    EXPECT_TRUE(left.empty()) << "left over:\n" << to_text(left);
  }
  OwnGround ground_;
  std::unique_ptr<BreakableSandbox> sandbox_;
};

void expect_failure_of(const Outcome& outcome, Step step, int error = kInjected) {
  EXPECT_EQ(outcome.status, Status::kSandboxError);
  EXPECT_EQ(outcome.exit_code, -1);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->step, plan::step_name(step));
  EXPECT_EQ(outcome.error->sys_errno, error);
}

struct StepCase {
  std::string rootfs;
  Step step;
};

class EveryStep : public FaultTest, public ::testing::WithParamInterface<StepCase> {};

TEST_P(EveryStep, EndsTheRunUnderItsNameOrIsReportedAndPassedOver) {
  open(GetParam().rootfs);
  if (IsSkipped() || HasFailure()) return;
  const Step step = GetParam().step;
  const plan::StepMask bit = plan::step_bit(step);
  const auto plan = sandbox_->plan(script());
  ASSERT_TRUE(plan) << to_string(plan.error());
  const Outcome outcome = run(script(), bit);
  EXPECT_LT(outcome.duration_seconds, 15.0);
  if ((plan->skip & bit) != 0) {
    EXPECT_TRUE(outcome.ok()) << "a step that is not walked cannot fail";
  } else if ((plan->may_fail & bit) != 0) {
    EXPECT_TRUE(outcome.ok());
    const auto layer = layer_of(outcome, plan::step_layer(step));
    EXPECT_EQ(layer.state, policy::LayerState::kMissing);
    EXPECT_THAT(layer.detail, StartsWith(plan::step_name(step)));
  } else {
    expect_failure_of(outcome, step);
    // Init's own rights go after the payload's exec: a moment in which it may have run.
    if (step != Step::kDropInit) {
      EXPECT_EQ(outcome.stdout_bytes, "");
    }
  }
  const Outcome next = run(script());
  EXPECT_TRUE(next.ok()) << collect::to_json(next);
  EXPECT_EQ(next.stdout_bytes, "ran\n");
}

std::vector<StepCase> step_cases() {
  std::vector<StepCase> cases;
  for (const char* rootfs : {"host", "default"}) {
    for (const Step step : all_steps()) cases.push_back({rootfs, step});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Steps, EveryStep, ::testing::ValuesIn(step_cases()),
                         [](const auto& chosen) {
                           return chosen.param.rootfs + "_" + plan::step_name(chosen.param.step);
                         });

// A required layer that the caller named may fail. Then the run goes on and says so, or a later
// step that needs it ends the run: it is never passed off as held.
class AllowedToBeMissing : public FaultTest, public ::testing::WithParamInterface<Step> {};

TEST_P(AllowedToBeMissing, IsNeverPassedOffAsHeld) {
  open();
  if (IsSkipped() || HasFailure()) return;
  const policy::Policy before = sandbox_->policy();
  const auto layer = policy::layer_from_name(plan::step_layer(GetParam()));
  ASSERT_TRUE(layer);
  sandbox_->policy().allow_missing = policy::layer_bit(*layer);
  const auto plan = sandbox_->plan(script());
  ASSERT_TRUE(plan);
  const Outcome outcome = run(script(), plan::step_bit(GetParam()));
  if ((plan->may_fail & plan::step_bit(GetParam())) == 0) {
    expect_failure_of(outcome, GetParam());
  } else if (outcome.status != Status::kSandboxError) {
    EXPECT_TRUE(outcome.ok()) << collect::to_json(outcome);
    EXPECT_EQ(layer_of(outcome, std::string(policy::layer_name(*layer))).state,
              policy::LayerState::kMissing);
  } else {
    EXPECT_NE(outcome.error->step, plan::step_name(GetParam())) << "it was to be passed over";
  }
  // What one run was allowed to lack must not weaken or break those after it.
  sandbox_->policy() = before;
  const Outcome next = run(script());
  EXPECT_TRUE(next.ok()) << collect::to_json(next);
  EXPECT_EQ(layer_of(next, std::string(policy::layer_name(*layer))).state,
            policy::LayerState::kHeld);
}

std::vector<Step> steps_of_required_layers() {
  std::vector<Step> steps = all_steps();
  std::erase_if(steps, [](Step step) {
    const auto layer = policy::layer_from_name(plan::step_layer(step));
    return !layer || !policy::layer_required(*layer);
  });
  return steps;
}
INSTANTIATE_TEST_SUITE_P(Steps, AllowedToBeMissing, ::testing::ValuesIn(steps_of_required_layers()),
                         [](const auto& chosen) { return plan::step_name(chosen.param); });

// Runs that are under way when something of ours dies.
class Deaths : public FaultTest {
 protected:
  void SetUp() override { open(); }

  // A run whose program is up and would go on for long.
  std::unique_ptr<RunInFlight> start_long_run() {
    RunHooks hooks;
    hooks.on_stdout = [this](std::string_view bytes) { said_ += bytes; };
    auto run = sandbox_->start(script("echo up; sleep 600 & sleep 600"), 0, std::move(hooks));
    EXPECT_TRUE(run) << to_string(run.error());
    if (!run) return nullptr;
    for (int i = 0; i < 100 && said_ != "up\n" && !(*run)->done(); ++i) {
      turn(**run, std::chrono::milliseconds(200));
    }
    EXPECT_EQ(said_, "up\n");
    return *std::move(run);
  }

  // The spawner's children: inits, and collectors.
  [[nodiscard]] std::vector<pid_t> children_of_spawner() const {
    const std::string pid = std::to_string(sandbox_->spawner_pid());
    std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
    std::vector<pid_t> children;
    for (pid_t child = 0; file >> child;) children.push_back(child);
    return children;
  }
  std::string said_;
};

TEST_F(Deaths, OfTheSpawnerEndsTheRunAndSaysSo) {
  const auto run = start_long_run();
  ASSERT_NE(run, nullptr);
  ASSERT_EQ(::kill(sandbox_->spawner_pid(), SIGKILL), 0);
  ASSERT_TRUE(drive(*run, std::chrono::seconds(15)));
  const Outcome outcome = run->take_outcome();
  EXPECT_EQ(outcome.status, Status::kSandboxError);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->step, "spawner");
  EXPECT_EQ(outcome.error->detail, "the spawner ended during the run");
  EXPECT_EQ(outcome.stdout_bytes, "up\n") << "what it said before is kept";
}

TEST_F(Deaths, OfTheSpawnerAtAnyMomentOfALaunchEndTheRun) {
  for (int moment = 0; moment < 20; ++moment) {
    const auto run = sandbox_->start(script("sleep 600"));
    ASSERT_TRUE(run) << to_string(run.error());
    for (int i = 0; i < moment; ++i) turn(**run, std::chrono::milliseconds(2));
    ASSERT_EQ(::kill(sandbox_->spawner_pid(), SIGKILL), 0);
    ASSERT_TRUE(drive(**run, std::chrono::seconds(15)));
    const Outcome outcome = (*run)->take_outcome();
    EXPECT_EQ(outcome.status, Status::kSandboxError);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->step, "spawner");
    sandbox_.reset();
    open();
  }
}

TEST_F(Deaths, OfTheSpawnerAtAnyMomentOfAKillEndTheRun) {
  for (int moment = 0; moment < 20; ++moment) {
    const auto run = start_long_run();
    ASSERT_NE(run, nullptr);
    run->cancel();
    for (int i = 0; i < moment && !run->done(); ++i) turn(*run, std::chrono::milliseconds(1));
    ASSERT_EQ(::kill(sandbox_->spawner_pid(), SIGKILL), 0);
    ASSERT_TRUE(drive(*run, std::chrono::seconds(15))) << moment;
    const Outcome outcome = run->take_outcome();
    if (outcome.status != Status::kCancelled) {
      EXPECT_EQ(outcome.status, Status::kSandboxError) << moment;
      ASSERT_TRUE(outcome.error);
      EXPECT_EQ(outcome.error->step, "spawner");
    }
    sandbox_.reset();
    const Things left = ground_.leaked();
    EXPECT_TRUE(left.empty()) << "moment " << moment << ":\n" << to_text(left);
    said_.clear();
    open();
  }
}

TEST_F(Deaths, OfTheSpawnerWhileFilesAreTakenEndTheRun) {
  RunHooks hooks;
  int taken = 0;
  hooks.sink = [&](collect::CollectedFile&, int) -> Result<void> {
    if (taken++ == 0) (void)::kill(sandbox_->spawner_pid(), SIGKILL);
    return {};
  };
  const std::string many = "for i in 1 2 3 4 5 6 7 8; do echo $i > /output/$i; done";
  auto run = sandbox_->start(script(many), 0, std::move(hooks));
  ASSERT_TRUE(run) << to_string(run.error());
  ASSERT_TRUE(drive(**run, std::chrono::seconds(15)));
  const Outcome outcome = (*run)->take_outcome();
  EXPECT_GE(taken, 1);
  // The walker dies with it; it may have said all by then.
  if (!outcome.ok()) {
    EXPECT_EQ(outcome.status, Status::kSandboxError) << collect::to_json(outcome);
  }
}

TEST_F(Deaths, OfTheSpawnerRefuseTheNextRunAndLeaveNothingOfIt) {
  ASSERT_EQ(::kill(sandbox_->spawner_pid(), SIGKILL), 0);
  const auto first = sandbox_->run(quick());
  const auto second = sandbox_->run(quick());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kInternal);
  EXPECT_THAT(to_string(second.error()), StartsWith("spawn: "));
  if (first) {
    EXPECT_EQ(first->status, Status::kSandboxError) << "it may have been in time";
  }
}

TEST_F(Deaths, OfInitAreNoResultOfTheProgram) {
  const auto run = start_long_run();
  ASSERT_NE(run, nullptr);
  const auto children = children_of_spawner();
  ASSERT_EQ(children.size(), 1U);
  ASSERT_EQ(::kill(children[0], SIGKILL), 0);
  ASSERT_TRUE(drive(*run, std::chrono::seconds(15)));
  const Outcome outcome = run->take_outcome();
  const bool separated = layer_of(outcome, "uid_separation").state == policy::LayerState::kHeld;
  EXPECT_EQ(outcome.status, separated ? Status::kSandboxError : Status::kSecurity);
  EXPECT_FALSE(outcome.ok());
  if (separated) {
    EXPECT_THAT(outcome.error->detail, HasSubstr("killed by signal 9"));
  }
}

TEST_F(Deaths, OfARunThatIsDroppedTakeEverythingAlong) {
  auto run = start_long_run();
  ASSERT_NE(run, nullptr);
  run.reset();
  EXPECT_TRUE(this->run(quick()).ok());
}

TEST_F(Deaths, OfASandboxWithRunsUnderWayTakeEverythingAlong) {
  auto run = start_long_run();
  ASSERT_NE(run, nullptr);
  auto other = sandbox_->start(script("sleep 600"));
  ASSERT_TRUE(other);
  (*other).reset();
  run.reset();
  sandbox_.reset();
}

// As many descriptors as the spawner has now; 0 where we may not look.
std::size_t descriptors_of(pid_t pid) {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/fd", error);
  return error ? 0 : static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class ManyFaults : public FaultTest {
 protected:
  void SetUp() override { open(); }
};

TEST_F(ManyFaults, AThousandFailedRunsInARowLeaveNothing) {
  std::mt19937 random(7);  // the same order each time
  const std::vector<Step> steps = all_steps();
  EXPECT_TRUE(run(quick()).ok());
  const std::size_t descriptors = descriptors_of(sandbox_->spawner_pid());
  int failed = 0;
  for (int i = 0; i < 1000; ++i) {
    const Step step = steps[random() % steps.size()];
    const Outcome outcome = run(i % 10 == 0 ? script() : quick(), plan::step_bit(step));
    const bool right =
        outcome.ok() || (outcome.error && outcome.error->step == plan::step_name(step));
    ASSERT_TRUE(right) << plan::step_name(step) << ": " << collect::to_json(outcome);
    failed += outcome.ok() ? 0 : 1;
  }
  EXPECT_GT(failed, 800);
  EXPECT_TRUE(run(script()).ok());
  const Things left = ground_.leaked(sandbox_->spawner_pid());
  EXPECT_TRUE(left.empty()) << "while the sandbox is still open:\n" << to_text(left);
  // The last run's are closed a moment after it is done; a leak would be there a thousand times.
  EXPECT_LE(descriptors_of(sandbox_->spawner_pid()), descriptors + 8);
}

}  // namespace
}  // namespace sbx::test
