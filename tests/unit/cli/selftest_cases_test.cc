#include "runtime/cli/selftest_cases.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <set>
#include <string>

#include "runtime/base/sys.h"
#include "runtime/cli/selftest_control.h"
#include "runtime/policy/layers.h"
#include "runtime/policy/policy.h"

namespace sbx::cli {
namespace {

Observation answered(int sys_errno, std::string value = {}) {
  Observation seen;
  seen.answered = true;
  seen.sys_errno = sys_errno;
  seen.value = std::move(value);
  return seen;
}

Observation ended_for(std::string syscall) {
  Observation seen;
  seen.hostile_syscall = std::move(syscall);
  return seen;
}

const AttackCase& find(std::string_view name) {
  for (const AttackCase& attack : attack_cases()) {
    if (attack.name == name) return attack;
  }
  ADD_FAILURE() << "no case " << name;
  return attack_cases().front();
}

TEST(SelftestCases, EveryCaseHasANameOfItsOwnAndAnExpectation) {
  std::set<std::string_view> names;
  for (const AttackCase& attack : attack_cases()) {
    EXPECT_TRUE(names.insert(attack.name).second) << attack.name;
    const Expectation& expected = attack.expected;
    EXPECT_TRUE(!expected.hostile_syscall.empty() || expected.looks_right != nullptr ||
                expected.errnos[0] != 0)
        << attack.name;
  }
  EXPECT_GE(names.size(), 120U);
}

TEST(SelftestCases, EveryClassHasCases) {
  std::set<std::string_view> classes;
  for (const AttackCase& attack : attack_cases()) {
    classes.insert(attack_class_name(attack.attack_class));
  }
  EXPECT_EQ(classes,
            (std::set<std::string_view>{"system calls", "views", "network", "setting up"}));
}

TEST(SelftestCases, EveryCaseIsOfALayerOrOfNone) {
  for (const AttackCase& attack : attack_cases()) {
    EXPECT_TRUE(attack.layer == "-" || policy::layer_from_name(attack.layer)) << attack.name;
  }
}

TEST(SelftestCases, AnActThatSucceedsInsideFails) {
  const AttackCase& attack = find("write to /etc");
  EXPECT_EQ(judge(attack, answered(0), answered(0)), CaseState::kFail);
  EXPECT_EQ(judge(attack, answered(EACCES), answered(0)), CaseState::kFail);
}

TEST(SelftestCases, AnActAnsweredRightWithAWorkingControlPasses) {
  EXPECT_EQ(judge(find("write to /etc"), answered(EROFS), answered(0)), CaseState::kPass);
  EXPECT_EQ(judge(find("mount a tmpfs"), ended_for("mount"), answered(0)), CaseState::kPass);
}

TEST(SelftestCases, ADenialThatIsNotCountedByNameFails) {
  const AttackCase& attack = find("kcmp of init");
  Observation inside = answered(EPERM);
  EXPECT_EQ(judge(attack, inside, answered(0)), CaseState::kFail);
  inside.denied = {"ptrace"};
  EXPECT_EQ(judge(attack, inside, answered(0)), CaseState::kFail);
  inside.denied = {"prctl", "kcmp"};
  EXPECT_EQ(judge(attack, inside, answered(0)), CaseState::kPass);
}

// Outside nothing is counted: there the answer alone must differ.
TEST(SelftestCases, AControlThatIsRefusedWithTheSameErrnoHasFailed) {
  Observation inside = answered(EPERM);
  inside.denied = {"kcmp"};
  EXPECT_EQ(judge(find("kcmp of init"), inside, answered(EPERM)), CaseState::kControlFailed);
}

TEST(SelftestCases, ATimeOutAndASignalAreNoDenial) {
  for (const collect::Status status :
       {collect::Status::kTimeout, collect::Status::kSignal, collect::Status::kOom,
        collect::Status::kSandboxError, collect::Status::kExit, collect::Status::kCancelled}) {
    collect::Outcome outcome;
    outcome.status = status;
    outcome.stdout_bytes = R"({"probe": "x", "errno": 1, "value": ""})";
    outcome.denials = {{"mount", "hostile", 1}, {"kcmp", "deny", 1}};
    const Observation seen = observe(outcome);
    EXPECT_FALSE(seen.answered);
    EXPECT_EQ(seen.hostile_syscall, "");
    EXPECT_EQ(judge(find("mount a tmpfs"), seen, answered(0)), CaseState::kFail);
    EXPECT_EQ(judge(find("kcmp of init"), seen, answered(0)), CaseState::kFail);
  }
}

TEST(SelftestCases, AProbeThatSaidNothingIsNoPass) {
  collect::Outcome outcome;
  outcome.status = collect::Status::kOk;
  EXPECT_EQ(judge(find("write to /etc"), observe(outcome), answered(0)), CaseState::kFail);
}

TEST(SelftestCases, AnOptionalLayerThatThisRunLacksIsNotApplicable) {
  Observation inside = answered(0, "86400 s");
  EXPECT_EQ(judge(find("uptime"), inside, answered(0, "86400 s")), CaseState::kFail);
  inside.lacking = {"time_namespace"};
  EXPECT_EQ(judge(find("uptime"), inside, answered(0, "86400 s")), CaseState::kNotApplicable);
  Observation written = answered(0);
  written.lacking = {"rootfs"};
  EXPECT_EQ(judge(find("write to /etc"), written, answered(0)), CaseState::kFail) << "required";
}

TEST(SelftestCases, EndingForAnotherCallFails) {
  EXPECT_EQ(judge(find("mount a tmpfs"), ended_for("clone"), answered(0)), CaseState::kFail);
}

TEST(SelftestCases, AControlThatIsAnsweredAlikeHasFailed) {
  EXPECT_EQ(judge(find("write to /etc"), answered(EROFS), answered(EROFS)),
            CaseState::kControlFailed);
  EXPECT_EQ(judge(find("write to /etc"), answered(EROFS), Observation{}),
            CaseState::kControlFailed);
}

TEST(SelftestCases, WhatTheHostDoesNotHaveIsNotApplicable) {
  EXPECT_EQ(judge(find("io_uring_setup"), answered(ENOSYS), answered(ENOSYS)),
            CaseState::kNotApplicable);
  EXPECT_EQ(judge(find("int 0x80"), answered(ENOSYS), answered(ENOSYS)), CaseState::kNotApplicable);
  EXPECT_EQ(judge(find("sysrq-trigger"), answered(ENOENT), std::nullopt),
            CaseState::kNotApplicable);
  EXPECT_EQ(judge(find("sysrq-trigger"), answered(0), std::nullopt), CaseState::kFail);
  EXPECT_EQ(judge(find("int 0x80"), answered(0), answered(ENOSYS)), CaseState::kFail)
      << "what the host does not have cannot succeed inside";
  Observation counted = answered(EPERM);
  counted.denied = {"mknodat"};
  EXPECT_EQ(judge(find("make a device"), counted, std::nullopt), CaseState::kNotApplicable);
  EXPECT_EQ(judge(find("no_new_privs"), answered(0, "1"), answered(0, "1")),
            CaseState::kNotApplicable);
}

TEST(SelftestCases, AnEmptyListOfKeysInsideSaysNothingWhereTheCallerHasNoneToShow) {
  for (const char* const name : {"/proc/keys", "/proc/key-users"}) {
    const AttackCase& attack = find(name);
    const Observation empty = answered(0, "nothing");
    EXPECT_EQ(judge(attack, empty, empty), CaseState::kNotApplicable);
    EXPECT_EQ(judge(attack, empty, answered(0, "0: 1 1/1")), CaseState::kPass);
    EXPECT_EQ(judge(attack, answered(0, "0: 1 1/1"), empty), CaseState::kFail);
  }
}

TEST(SelftestCases, TheIdMapMustBeOneNestedId) {
  const AttackCase& attack = find("no host id in uid_map");
  EXPECT_TRUE(matches(attack.expected, answered(0, "     65534          7          1|")));
  EXPECT_FALSE(matches(attack.expected, answered(0, "     65534          7         10|")));
  EXPECT_FALSE(matches(attack.expected, answered(0, "         0          0 4294967295|")));
  EXPECT_FALSE(
      matches(attack.expected, answered(0, "     65534          7          1|  0  8  1|")));
}

TEST(SelftestCases, OnlyAWholeProbeLineCounts) {
  EXPECT_TRUE(parse_probe_line(R"({"probe": "x", "errno": 1, "value": ""})").answered);
  EXPECT_FALSE(parse_probe_line(R"({"probe": "x", "errno": "1"})").answered);
  EXPECT_FALSE(parse_probe_line("").answered);
  EXPECT_EQ(parse_probe_line("unshare: denied").trouble, "unshare: denied");
}

// The errno that the policy of the run gives is as good as that of the default one.
TEST(SelftestCases, ADenialAsTheRunsOwnPolicyHasItIsHeld) {
  const auto judged = policy::load_policy("judge");
  ASSERT_TRUE(judged.has_value());
  Observation inside = answered(EACCES);
  inside.denied = {"socket"};
  for (const char* const name : {"packet socket", "UDP to the internet"}) {
    const AttackCase& attack = find(name);
    EXPECT_EQ(judge(attack, inside, answered(0)), CaseState::kFail) << name;
    EXPECT_EQ(judge(attack, inside, answered(0), &judged->seccomp), CaseState::kPass) << name;
    EXPECT_EQ(judge(attack, inside, answered(EACCES), &judged->seccomp), CaseState::kControlFailed)
        << name;
    EXPECT_EQ(judge(attack, answered(EACCES), answered(0), &judged->seccomp), CaseState::kFail)
        << name << " was denied by nobody";
    EXPECT_EQ(judge(attack, answered(0), answered(0), &judged->seccomp), CaseState::kFail) << name;
  }
  EXPECT_EQ(judge(find("/var/run/docker.sock"), inside, answered(ENOENT), &judged->seccomp),
            CaseState::kNotApplicable);
  inside.sys_errno = EPERM;
  EXPECT_EQ(judge(find("packet socket"), inside, answered(0), &judged->seccomp), CaseState::kFail)
      << "not what the policy gives";
  const auto odd = policy::parse_policy(
      "name = \"odd\"\ndescription = \"x\"\n[seccomp]\nhostile = [\"kcmp\"]\n"
      "deny = { mount = \"EACCES\" }\n",
      "odd.toml");
  ASSERT_TRUE(odd.has_value()) << to_string(odd.error());
  EXPECT_EQ(judge(find("kcmp of init"), ended_for("kcmp"), answered(0), &odd->seccomp),
            CaseState::kPass);
  EXPECT_EQ(judge(find("kcmp of init"), ended_for("mount"), answered(0), &odd->seccomp),
            CaseState::kFail);
  inside.sys_errno = EACCES;
  inside.denied = {"mount"};
  EXPECT_EQ(judge(find("mount a tmpfs"), inside, answered(0), &odd->seccomp), CaseState::kPass);
}

// The controls are what makes a pass mean something: on a host that can do them, each shows the act
// at work. None needs the sandbox.
TEST(SelftestControls, EveryControlShowsTheActAtWorkOrDoesNotApply) {
  const Result<ControlGround> ground = ControlGround::prepare();
  ASSERT_TRUE(ground.has_value()) << to_string(ground.error());
  for (const AttackCase& attack : attack_cases()) {
    const std::optional<Observation> control = run_control(attack, *ground);
    if (!control) {
      EXPECT_NE(::geteuid(), 0U) << attack.name;
      continue;
    }
    ASSERT_TRUE(control->answered) << attack.name << ": " << control->trouble;
    const bool absent = attack.absent_errno != 0 && control->sys_errno == attack.absent_errno;
    EXPECT_TRUE(absent || attack.host_may_match || !matches(attack.expected, *control))
        << attack.name << ": " << describe(*control);
  }
}

TEST(SelftestControls, AControlEndsOnceItIsCancelled) {
  const Result<ControlGround> ground = ControlGround::prepare();
  ASSERT_TRUE(ground.has_value()) << to_string(ground.error());
  auto cancel = sys::pipe();
  ASSERT_TRUE(cancel);
  AttackCase attack{};
  attack.act = "park";
  attack.control_argument = "1000";  // milliseconds
  ASSERT_EQ(::write(cancel->second.get(), "", 1), 1);
  const std::optional<Observation> control = run_control(attack, *ground, cancel->first.get());
  ASSERT_TRUE(control);
  EXPECT_EQ(control->trouble, "cancelled");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "it is reaped";
}

// In a process of its own: makes poll(2) and ppoll(2) fail with ENOMEM.
bool refuse_polls() {
#ifdef SYS_poll
  constexpr unsigned kPoll = SYS_poll;
#else
  constexpr unsigned kPoll = SYS_ppoll;
#endif
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kPoll, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ppoll, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(SelftestControls, AControlThatCouldNotBeHeardIsTrouble) {
  const Result<ControlGround> ground = ControlGround::prepare();
  ASSERT_TRUE(ground.has_value()) << to_string(ground.error());
  auto pipe = sys::pipe();
  ASSERT_TRUE(pipe);
  const pid_t pid = ::fork();
  if (pid == 0) {
    AttackCase attack{};
    attack.act = "park";
    attack.control_argument = "1000";  // milliseconds
    const bool refused = refuse_polls();
    const std::optional<Observation> control = run_control(attack, *ground);
    if (refused && control) (void)sys::write_all(pipe->second.get(), control->trouble);
    ::_exit(0);
  }
  pipe->second.reset();
  EXPECT_EQ(*sys::read_all(pipe->first.get(), 4096),
            "poll: the probe's output: Cannot allocate memory");
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

}  // namespace
}  // namespace sbx::cli
