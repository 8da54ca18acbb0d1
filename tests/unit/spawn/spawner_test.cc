// The spawner on this host: it starts, tells what fails, and ends with its supervisor.
#include "runtime/spawn/spawner.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/base/sys.h"
#include "runtime/plan/host_facts.h"

namespace sbx::spawn {
namespace {

using ::testing::HasSubstr;

SpawnerOptions options_for_this_host() {
  const plan::HostFacts host = plan::read_host_facts({}, 0);
  SpawnerOptions options;
  options.ids = host.ids;
  options.id_count = host.id_count;
  options.host_uid = host.host_uid;
  options.host_gid = host.host_gid;
  options.sub_uid = host.sub_uid;
  options.sub_gid = host.sub_gid;
  return options;
}

bool ends_within(const UniqueFd& pidfd, int milliseconds) {
  pollfd end{pidfd.get(), POLLIN, 0};
  return ::poll(&end, 1, milliseconds) == 1;
}

UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Waits for a packet of the control socket; kind 0 when nothing came in time.
AnswerPacket next_answer(const UniqueFd& control, std::vector<UniqueFd>* fds = nullptr) {
  AnswerPacket answer;
  pollfd ready{control.get(), POLLIN, 0};
  if (::poll(&ready, 1, 10'000) != 1) return answer;
  auto received =
      sys::receive_packet(control.get(), {reinterpret_cast<std::uint8_t*>(&answer), sizeof answer});
  if (!received || !*received || (*received)->size != sizeof answer) return {};
  if (fds != nullptr) *fds = std::move((*received)->fds);
  return answer;
}

// A spawner, and a launch of sbx-init whose plan is no plan: it says so and ends at once.
class Launches : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = Spawner::start(options_for_this_host());
    if (!started && started.error().code == ErrorCode::kHost) {
      GTEST_SKIP() << to_string(started.error()) << "; " << started.error().fix;
    }
    ASSERT_TRUE(started) << to_string(started.error());
    spawner_.emplace(*std::move(started));
    auto report = sys::pipe();
    auto lifeline = sys::pipe();
    ASSERT_TRUE(report && lifeline);
    report_ = std::move(report->first);
    report_end_ = std::move(report->second);
    lifeline_ = std::move(lifeline->second);
    lifeline_end_ = std::move(lifeline->first);
    null_ = *sys::open("/dev/null", O_RDWR);
    no_plan_ = *sys::sealed_memfd("no-plan", {}, false);
  }

  [[nodiscard]] LaunchRequest request() const {
    LaunchRequest request;
    request.plan = no_plan_.get();
    request.stdin_fd = request.stdout_fd = request.stderr_fd = null_.get();
    request.report = report_end_.get();
    request.lifeline = lifeline_end_.get();
    request.output = {"1048576", "64", "0755", "0"};
    return request;
  }

  [[nodiscard]] AnswerPacket first_answer(const LaunchRequest& request) {
    auto control = spawner_->launch(request);
    EXPECT_TRUE(control);
    return control ? next_answer(*control) : AnswerPacket{};
  }

  std::optional<Spawner> spawner_;
  UniqueFd report_, report_end_, lifeline_, lifeline_end_, null_, no_plan_;
};

TEST_F(Launches, TellOfInitsBirthAndDeath) {
  const auto control = spawner_->launch(request());
  ASSERT_TRUE(control);
  std::vector<UniqueFd> fds;
  const AnswerPacket launched = next_answer(*control, &fds);
  ASSERT_EQ(launched.kind, AnswerKind::kLaunched);
  ASSERT_EQ(fds.size(), 1U);
  EXPECT_TRUE(ends_within(fds[0], 10'000)) << "the pidfd that was passed is init's";
  const AnswerPacket ended = next_answer(*control);
  ASSERT_EQ(ended.kind, AnswerKind::kEnded);
  EXPECT_EQ(ended.output_empty, 1);
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 1);
}

TEST_F(Launches, AreNotDisturbedByAQuestionWhichOneThatWasStoppedAnswersLater) {
  ASSERT_EQ(first_answer(request()).kind, AnswerKind::kLaunched);
  const auto answer = spawner_->ask();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(ends_within(*answer, 10'000));
  ASSERT_EQ(::kill(spawner_->pid(), SIGSTOP), 0);
  ASSERT_EQ(::waitpid(spawner_->pid(), nullptr, WUNTRACED), spawner_->pid());
  const auto later = spawner_->ask();
  ASSERT_TRUE(later);
  EXPECT_FALSE(ends_within(*later, 0));
  ASSERT_EQ(::kill(spawner_->pid(), SIGCONT), 0);
  EXPECT_TRUE(ends_within(*later, 10'000));
  EXPECT_EQ(first_answer(request()).kind, AnswerKind::kLaunched);
}

TEST_F(Launches, RunInitWhichReportsThatItsPlanIsNone) {
  const auto control = spawner_->launch(request());
  ASSERT_TRUE(control);
  plan::Record record;
  ASSERT_EQ(::read(report_.get(), &record, sizeof record), sizeof record);
  EXPECT_EQ(record.kind, plan::RecordKind::kStepFailed);
  EXPECT_EQ(record.step, plan::Step::kReadPlan);
  EXPECT_EQ(record.error, EPROTO);
}

TEST_F(Launches, IntoWhatIsNoCgroupFailWithTheCallsName) {
  LaunchRequest into_null = request();
  into_null.init_leaf = null_.get();
  const AnswerPacket answer = first_answer(into_null);
  EXPECT_EQ(answer.kind, AnswerKind::kFailed);
  EXPECT_STREQ(answer.operation, "clone3");
  EXPECT_EQ(answer.error, EBADF);
}

TEST_F(Launches, WithABadOutputSizeFailWithTheMountsName) {
  LaunchRequest bad = request();
  bad.output.size = "much";
  const AnswerPacket answer = first_answer(bad);
  EXPECT_EQ(answer.kind, AnswerKind::kFailed);
  EXPECT_STREQ(answer.operation, "fsmount(/output)");
  EXPECT_EQ(answer.error, EINVAL);
}

TEST_F(Launches, ThatFailedDoNotSpoilTheNext) {
  LaunchRequest bad = request();
  bad.init_leaf = null_.get();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(first_answer(bad).kind, AnswerKind::kFailed);
  EXPECT_EQ(first_answer(request()).kind, AnswerKind::kLaunched);
}

TEST_F(Launches, WithLimitsTooLongForThePacketAreNeverSent) {
  LaunchRequest bad = request();
  bad.output.size = std::string(24, '1');
  const auto control = spawner_->launch(bad);
  ASSERT_FALSE(control);
  EXPECT_EQ(control.error().code, ErrorCode::kInvalid);
}

TEST_F(Launches, AfterTheSpawnersDeathAreAnErrorAndNoSignal) {
  ASSERT_EQ(::kill(spawner_->pid(), SIGKILL), 0);
  ASSERT_TRUE(ends_within(open_pidfd(spawner_->pid()), 10'000));
  const auto control = spawner_->launch(request());
  if (!control) {
    EXPECT_EQ(control.error().sys_errno, EPIPE);
    return;
  }
  // A net namespace was being made: that child had the socket open a moment longer. Nobody answers.
  std::array<std::uint8_t, sizeof(AnswerPacket)> answer;
  const auto packet = sys::receive_packet(control->get(), answer);
  EXPECT_TRUE(!packet || (*packet)->size == 0);
}

TEST_F(Launches, OfASpawnerThatIsDroppedEndWithIt) {
  const pid_t pid = spawner_->pid();
  const UniqueFd pidfd = open_pidfd(pid);
  spawner_.reset();
  EXPECT_TRUE(ends_within(pidfd, 0)) << "the destructor waits";
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(Launches, OfASpawnerThatIsStoppedDoNotHoldUpItsEnd) {
  const pid_t pid = spawner_->pid();
  const UniqueFd pidfd = open_pidfd(pid);
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  spawner_.reset();
  EXPECT_TRUE(ends_within(pidfd, 0)) << "after a few seconds it is killed";
  EXPECT_EQ(::kill(pid, 0), -1);
}

// A daemon's one thread asks: it must get an answer, and must not wait for each of its runs.
TEST_F(Launches, OfASpawnerThatIsStoppedAreRefusedOnceItsQueueIsFull) {
  LaunchRequest small = request();
  small.net_namespace = false;
  ASSERT_EQ(first_answer(small).kind, AnswerKind::kLaunched);
  ASSERT_EQ(::kill(spawner_->pid(), SIGSTOP), 0);
  int queued = 0;
  auto refused = spawner_->launch(small);
  for (; refused && queued < 5000; ++queued) refused = spawner_->launch(small);
  ASSERT_FALSE(refused) << queued;
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(spawner_->launch(small));
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
  if (::geteuid() == 0) {  // others' descriptors under way are limited before
    EXPECT_EQ(refused.error().code, ErrorCode::kHost);
    EXPECT_EQ(refused.error().sys_errno, ETIMEDOUT);
    EXPECT_TRUE(is_spawner_silent(refused.error()));
    EXPECT_THAT(refused.error().fix, HasSubstr("stops it"));
  }
  ASSERT_EQ(::kill(spawner_->pid(), SIGCONT), 0);
  // What had been asked for by then has lost its supervisor, and is gone through first.
  auto control = spawner_->launch(small);
  for (int i = 0; !control && i < 5000; ++i) {
    (void)::poll(nullptr, 0, 10);
    control = spawner_->launch(small);
  }
  ASSERT_TRUE(control) << to_string(control.error());
  EXPECT_EQ(next_answer(*control).kind, AnswerKind::kLaunched);
}

TEST(Spawner, ThatIsSilentIsToldFromWhatElseFailsOrTakesLong) {
  const Error of_a_run = spawner_silent(kSpawnerOperation, 1);
  EXPECT_TRUE(is_spawner_silent(of_a_run));
  EXPECT_TRUE(is_spawner_silent(of_a_run.operation, of_a_run.sys_errno));
  EXPECT_TRUE(is_spawner_silent(spawner_silent("sendmsg", 1)));
  Error gone = of_a_run;
  gone.sys_errno = EPIPE;
  EXPECT_FALSE(is_spawner_silent(gone));
  EXPECT_FALSE(is_spawner_silent(gone.operation, gone.sys_errno));
  const Error of_another = host_lacks("connect", ETIMEDOUT, "", "");
  EXPECT_FALSE(is_spawner_silent(of_another));
  EXPECT_FALSE(is_spawner_silent(of_another.operation, of_another.sys_errno));
}

TEST(Spawner, ThatIsStoppedDoesNotHoldUpAStart) {
  SpawnerOptions options = options_for_this_host();
  options.answer_patience = std::chrono::milliseconds{200};
  auto spawner = Spawner::begin(options);
  ASSERT_TRUE(spawner) << to_string(spawner.error());
  const pid_t pid = spawner->pid();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  // How far it has come by then is its own affair.
  Result<void> failed = spawner->map_ids();
  if (failed) {
    const auto launched = spawner->launch({});
    ASSERT_FALSE(launched);
    failed = launched.error();
  }
  EXPECT_EQ(failed.error().code, ErrorCode::kHost);
  EXPECT_EQ(failed.error().sys_errno, ETIMEDOUT);
  EXPECT_EQ(failed.error().stage, "spawn");
  EXPECT_THAT(failed.error().detail, HasSubstr("process " + std::to_string(pid)));
  {
    const Spawner dropped = *std::move(spawner);
  }
  EXPECT_EQ(::kill(pid, 0), -1) << "killed, and waited for";
}

TEST(Spawner, ThatIsDroppedBeforeItHasItsIdsEnds) {
  pid_t pid = -1;
  {
    const auto spawner = Spawner::begin(options_for_this_host());
    ASSERT_TRUE(spawner) << to_string(spawner.error());
    pid = spawner->pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1) << "the destructor waits";
}

// Runs `act` in a child that then dies; returns what it wrote into the pipe.
std::string in_child(void (*act)(int pipe)) {
  auto ends = sys::pipe();
  if (!ends) return "no pipe";
  const pid_t pid = ::fork();
  if (pid == 0) {
    act(ends->second.get());
    (void)::kill(::getpid(), SIGKILL);
  }
  ends->second.reset();
  auto text = sys::read_all(ends->first.get(), 4096);
  (void)::waitpid(pid, nullptr, 0);
  return text ? *text : to_string(text.error());
}

TEST(Spawner, DiesWithASupervisorThatIsKilled) {
  // The pipe ends when its last holder does. The spawner holds nothing of its parent's, so what is
  // awaited is its pid.
  const std::string pid = in_child([](int pipe) {
    const auto spawner = Spawner::start(options_for_this_host());
    if (!spawner) return;
    (void)sys::write_all(pipe, std::to_string(spawner->pid()));
    (void)::kill(::getpid(), SIGKILL);
  });
  if (pid.empty()) GTEST_SKIP() << "this host starts no spawner";
  const UniqueFd pidfd = open_pidfd(std::stoi(pid));
  if (pidfd) {
    EXPECT_TRUE(ends_within(pidfd, 10'000));
  }
}

// A user namespace in which no further one may be made, as sysctl user.max_user_namespaces=0 has
// it.
bool enter_namespace_without_more() {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER) != 0) return false;
  return sys::write_file("/proc/self/setgroups", "deny") &&
         sys::write_file("/proc/self/uid_map", "0 " + uid + " 1") &&
         sys::write_file("/proc/self/gid_map", "0 " + gid + " 1") &&
         sys::write_file("/proc/sys/user/max_user_namespaces", "0");
}

TEST(Spawner, WithoutUserNamespacesIsRefusedWithTheFix) {
  const std::string said = in_child([](int pipe) {
    if (!enter_namespace_without_more()) return;
    const auto spawner = Spawner::start(options_for_this_host());
    const std::string text =
        spawner ? "it started" : to_string(spawner.error()) + " | " + spawner.error().fix;
    (void)sys::write_all(pipe, text);
  });
  if (said.empty()) GTEST_SKIP() << "this host gives no user namespace to set that up in";
  EXPECT_THAT(said, HasSubstr("unshare(CLONE_NEWUSER): cannot enter a user namespace: No space"));
  EXPECT_THAT(said, HasSubstr("user.max_user_namespaces"));
}

}  // namespace
}  // namespace sbx::spawn
