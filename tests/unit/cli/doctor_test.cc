// doctor on hosts that cannot be had, each simulated at the probes; hosts that can are in
// tests/integration/doctor_test.cc and tests/vm/guest/cases/doctor.sh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/cli/fake_host.h"

namespace sbx::cli {
namespace {

using ::testing::HasSubstr;

TEST(DoctorOnASimulatedHost, AHostThatHasEverythingIsOk) {
  FakeHost host;
  for (const Check& check : checks_of(host)) {
    EXPECT_EQ(check.state, CheckState::kOk) << check.name << ": " << check.detail;
    EXPECT_TRUE(check.fix.empty()) << check.name;
  }
  EXPECT_TRUE(all_required_hold(checks_of(host)));
}

TEST(DoctorOnASimulatedHost, AHardCoreLimitOfZeroIsEnoughOnlyWhereCoresGoToFiles) {
  FakeHost host;
  host.host_facts.hard_core = 0;
  EXPECT_EQ(check_of(host, "rlimits").state, CheckState::kOk);
  host.host_facts.core_is_piped = true;
  EXPECT_EQ(check_of(host, "rlimits").state, CheckState::kMissing);
  EXPECT_THAT(check_of(host, "rlimits").fix, HasSubstr("ulimit -c 1"));
  EXPECT_FALSE(all_required_hold(checks_of(host)));
}

TEST(DoctorOnASimulatedHost, LimitsThatLowerEveryRunsAreNamed) {
  FakeHost host;
  host.host_facts.hard_nofile = 255;
  EXPECT_THAT(check_of(host, "rlimits").detail, HasSubstr("open files is 255"));
  EXPECT_THAT(check_of(host, "rlimits").fix, HasSubstr("ulimit -n 256"));
  EXPECT_EQ(check_of(host, "rlimits").state, CheckState::kDegraded);
  EXPECT_TRUE(all_required_hold(checks_of(host))) << "runs start all the same";
  host.host_facts.hard_nofile = 256;
  host.host_facts.hard_fsize = 32 * policy::kMiB;
  EXPECT_THAT(check_of(host, "rlimits").detail, HasSubstr("file's size is 32M"));
}

// A number below it means another process: nothing may be tried.
TEST(DoctorOnASimulatedHost, AProcOfAnotherPidNamespaceEndsTheSearch) {
  FakeHost host;
  host.proc_of_ours = host_lacks("proc", 0, "of another pid namespace", "mount one");
  const std::vector<Check> checks = checks_of(host);
  ASSERT_EQ(checks.size(), 4U);  // the kernel, it, the image, and the run that is not tried
  EXPECT_EQ(checks[1].name, "proc");
  EXPECT_EQ(checks[1].fix, "mount one");
  EXPECT_FALSE(all_required_hold(checks));
  EXPECT_EQ(host.mapped.count, 0U);
}

// The program of a probe is given them too, and fails for their want.
TEST(DoctorOnASimulatedHost, ADeviceThatIsNotThereEndsTheSearch) {
  FakeHost host;
  host.devices_of_ours = host_lacks("devices", ENOENT, "/dev/full", "mknod it");
  const std::vector<Check> checks = checks_of(host);
  ASSERT_EQ(checks.size(), 4U);  // the kernel, it, the image, and the run that is not tried
  EXPECT_EQ(checks[1].name, "devices");
  EXPECT_EQ(checks[1].fix, "mknod it");
  EXPECT_FALSE(all_required_hold(checks));
}

TEST(DoctorOnASimulatedHost, EveryCheckThatIsNotOkHasAFixOfOneLine) {
  FakeHost host;
  host.release = "4.19.0";
  host.namespaces = host.proc = host.ids = host.time = host.memfd = Act{"step", EPERM};
  host.cgroup = host_lacks("cgroup", EACCES, "none", "make the groups");
  host.directory = host_lacks("open", EACCES, "/tmp/sbx-1000", "remove it");
  host.host_facts.hard_core = 0;
  host.host_facts.core_is_piped = true;
  host.filter_errno = EINVAL;
  host.abi = -ENOSYS;
  host.image = host_lacks("find_image", 0, "none", "build it");
  for (const Check& check : checks_of(host)) {
    EXPECT_NE(check.state, CheckState::kOk) << check.name;
    EXPECT_FALSE(check.fix.empty()) << check.name;
    EXPECT_EQ(check.fix.find('\n'), std::string::npos) << check.name;
  }
  EXPECT_FALSE(all_required_hold(checks_of(host)));
}

// Whatever a probe is of, its own fix would not help.
TEST(DoctorOnASimulatedHost, WhatThereWasNoProcessOrMemoryForIsUntried) {
  for (const auto& [sys_errno, fix] : {std::pair{EAGAIN, "ulimit -u"}, {ENOMEM, "ulimit -d"}}) {
    FakeHost host;
    host.namespaces = host.proc = host.ids = host.time = host.memfd = Act{"fork", sys_errno};
    for (const char* const name :
         {"namespaces", "proc", "subordinate_ids", "time_namespace", "memfd_exec"}) {
      const Check check = check_of(host, name);
      EXPECT_EQ(check_state_name(check.state), "untried") << name;
      EXPECT_THAT(check.fix, HasSubstr(fix)) << name;
    }
    EXPECT_FALSE(all_required_hold(checks_of(host)));
    EXPECT_FALSE(runs_are_refused(checks_of(host))) << "nobody knows";
    host.action_errno = ENOSYS;
    EXPECT_TRUE(runs_are_refused(checks_of(host)));
  }
}

TEST(DoctorOnASimulatedHost, AnOldKernelIsMissing) {
  FakeHost host;
  host.release = "5.18.3";
  EXPECT_EQ(check_of(host, "kernel").state, CheckState::kMissing);
  host.release = "5.19.0";
  EXPECT_EQ(check_of(host, "kernel").state, CheckState::kOk);
  host.release = "10.0";
  EXPECT_EQ(check_of(host, "kernel").state, CheckState::kOk);
}

TEST(DoctorOnASimulatedHost, DebiansSwitchForUserNamespacesIsNamed) {
  FakeHost host;
  host.namespaces = {"unshare user", EPERM};
  host.files["/proc/sys/kernel/unprivileged_userns_clone"] = "0\n";
  EXPECT_THAT(check_of(host, "namespaces").fix, HasSubstr("unprivileged_userns_clone=1"));
}

TEST(DoctorOnASimulatedHost, AppArmorsRestrictionIsNamed) {
  FakeHost host;
  host.namespaces = {"make mounts private", EACCES};
  host.files["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "1\n";
  EXPECT_THAT(check_of(host, "namespaces").fix, HasSubstr("AppArmor"));
}

TEST(DoctorOnASimulatedHost, ANamespaceCountOfZeroIsNamed) {
  FakeHost host;
  host.namespaces = {"unshare net", ENOSPC};
  host.files["/proc/sys/user/max_net_namespaces"] = "0\n";
  EXPECT_THAT(check_of(host, "namespaces").fix, HasSubstr("user.max_net_namespaces"));
}

TEST(DoctorOnASimulatedHost, WhatLiesOverProcIsNamed) {
  FakeHost host;
  host.proc = {"fsmount proc", EPERM};
  host.files["/proc/self/mountinfo"] =
      "22 1 0:5 / /proc rw - proc proc rw\n"
      "23 22 0:6 / /proc/sys/fs/binfmt_misc rw - binfmt_misc x rw\n"
      "24 22 0:5 /sys /proc/sys ro - proc proc rw\n";
  const Check check = check_of(host, "proc");
  EXPECT_EQ(check.state, CheckState::kMissing);
  EXPECT_THAT(check.detail, HasSubstr("/proc/sys"));
  EXPECT_EQ(check.detail.find("binfmt_misc"), std::string::npos);
}

TEST(DoctorOnASimulatedHost, AMissingCgroupRefuses) {
  FakeHost host;
  host.cgroup = host_lacks("cgroup", EACCES, "no group is mine", "sudo mkdir …");
  const Check check = check_of(host, "cgroup");
  EXPECT_EQ(check.state, CheckState::kMissing);
  EXPECT_EQ(check.fix, "sudo mkdir …");
  EXPECT_FALSE(all_required_hold(checks_of(host)));
}

TEST(DoctorOnASimulatedHost, SwapWithoutALimitDegradesARequiredLayer) {
  FakeHost host;
  host.cgroup = CgroupFacts{"v1", false};
  EXPECT_EQ(check_of(host, "cgroup").state, CheckState::kDegraded);
  EXPECT_FALSE(all_required_hold(checks_of(host)));
}

TEST(DoctorOnASimulatedHost, ANoexecMemfdIsNamed) {
  FakeHost host;
  host.memfd = {"memfd_create", EACCES};
  host.files["/proc/sys/vm/memfd_noexec"] = "2\n";
  EXPECT_THAT(check_of(host, "memfd_exec").fix, HasSubstr("vm.memfd_noexec=1"));
}

TEST(DoctorOnASimulatedHost, SeccompWithoutKillableWaitsIsMissing) {
  FakeHost host;
  host.filter_errno = EINVAL;
  EXPECT_EQ(check_of(host, "seccomp").state, CheckState::kMissing);
}

TEST(DoctorOnASimulatedHost, OptionalLayersRefuseNothing) {
  FakeHost host;
  host.abi = -EOPNOTSUPP;
  host.time = {"unshare time", EINVAL};
  EXPECT_EQ(check_of(host, "landlock").state, CheckState::kMissing);
  EXPECT_EQ(check_of(host, "time_namespace").state, CheckState::kMissing);
  EXPECT_TRUE(all_required_hold(checks_of(host)));
}

TEST(DoctorOnASimulatedHost, ATimeNamespaceThatNoPlanUsesIsMissing) {
  FakeHost host;
  host.host_facts.missing = policy::layer_bit(policy::Layer::kTimeNamespace);
  const Check check = check_of(host, "time_namespace");
  EXPECT_EQ(check.state, CheckState::kMissing);
  EXPECT_THAT(check.fix, HasSubstr("6.3"));
  EXPECT_TRUE(all_required_hold(checks_of(host)));
}

TEST(DoctorOnASimulatedHost, TheFirstLandlockIsTooOld) {
  FakeHost host;
  host.abi = 1;
  const Check check = check_of(host, "landlock");
  EXPECT_EQ(check.state, CheckState::kMissing);
  EXPECT_FALSE(check.fix.empty());
  host.abi = 2;
  EXPECT_EQ(check_of(host, "landlock").state, CheckState::kOk);
}

TEST(DoctorOnASimulatedHost, AnImageIsMissingForWhatARunWouldSay) {
  FakeHost host;
  host.image = host_lacks("find_image", 0, "no image 'default' in /images", "scripts/image");
  EXPECT_EQ(check_of(host, "image").state, CheckState::kMissing);
  EXPECT_EQ(check_of(host, "image").detail, "no image 'default' in /images");
  EXPECT_EQ(check_of(host, "image").fix, "scripts/image");
}

TEST(DoctorOnASimulatedHost, AnImageThatOthersCannotReadIsMissing) {
  FakeHost host;
  host.paths["/images/default/d1/rootfs"] = {0, 0700};
  EXPECT_THAT(check_of(host, "image").fix, HasSubstr("chmod a+rX"));
}

TEST(DoctorOnASimulatedHost, AnImageThatCannotBeLookedAtIsMissing) {
  FakeHost host;
  const std::string path = "/images/default/d1/rootfs";
  host.paths[path] = {EACCES, 0};
  EXPECT_EQ(check_of(host, "image").state, CheckState::kMissing);
  EXPECT_EQ(check_of(host, "image").detail, path + ": Permission denied");
  EXPECT_THAT(check_of(host, "image").fix, HasSubstr("chmod a+rX"));
  host.paths[path] = {ENOENT, 0};
  EXPECT_EQ(check_of(host, "image").detail, path + ": No such file or directory");
  EXPECT_THAT(check_of(host, "image").fix, HasSubstr("scripts/image")) << "no mode helps";
}

TEST(DoctorOnASimulatedHost, AnImageWithoutAManifestIsDegraded) {
  FakeHost host;
  host.manifest = host_lacks("manifest", ENOENT, "/images/default/d1/manifest.json", "rebuild it");
  const Check check = check_of(host, "image");
  EXPECT_EQ(check.state, CheckState::kDegraded);
  EXPECT_FALSE(check.required) << "runs start all the same";
  EXPECT_EQ(check.detail, "/images/default/d1/manifest.json: No such file or directory");
}

TEST(DoctorOnASimulatedHost, AnImageWithoutAnInterpreterIsMissing) {
  FakeHost host;
  host.interpreters = host_lacks("interpreter", ENOENT, "/images/usr/bin/bash", "rebuild it");
  const Check check = check_of(host, "image");
  EXPECT_EQ(check.state, CheckState::kMissing);
  EXPECT_TRUE(check.required);
  EXPECT_EQ(check.detail, "/images/usr/bin/bash: No such file or directory");
  EXPECT_EQ(check.fix, "rebuild it");
}

TEST(DoctorOnASimulatedHost, AnImageThatOthersMayWriteBelowItsTopIsDegraded) {
  FakeHost host;
  host.contents = host_lacks("find_image", 0, "/images/usr can be written", "chmod go-w");
  const Check check = check_of(host, "image");
  EXPECT_EQ(check.state, CheckState::kDegraded);
  EXPECT_FALSE(check.required) << "a run does not look there";
  EXPECT_EQ(check.fix, "chmod go-w");
}

TEST(DoctorOnASimulatedHost, ARunThatFailsIsMissingWithItsOwnFix) {
  FakeHost host;
  EXPECT_EQ(check_of(host, "run").detail, "an empty program of python, bash");
  host.ran = host_lacks("run", 0, "an empty program of python ended with 1", "rebuild it");
  const Check check = check_of(host, "run");
  EXPECT_EQ(check.state, CheckState::kMissing);
  EXPECT_TRUE(check.required);
  EXPECT_THAT(check.detail, HasSubstr("an empty program of python ended with 1"));
  EXPECT_EQ(check.fix, "rebuild it");
  host.ran = std::vector<std::string>{};
  EXPECT_EQ(check_of(host, "run").state, CheckState::kOk) << "of programs alone";
}

TEST(DoctorOnASimulatedHost, NothingIsRunWhereSomethingThatIsRequiredIsMissing) {
  FakeHost host;
  host.action_errno = ENOSYS;
  const Check check = check_of(host, "run");
  EXPECT_EQ(check.state, CheckState::kUntried);
  EXPECT_EQ(host.runs, 0);
  EXPECT_FALSE(check.fix.empty());
}

}  // namespace
}  // namespace sbx::cli
