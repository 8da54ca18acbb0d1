// doctor on hosts that cannot be had, each simulated at the probes; hosts that can are in
// tests/integration/doctor_test.cc and tests/vm/guest/cases/doctor.sh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>

#include <cerrno>
#include <map>

#include "runtime/cli/doctor_checks.h"

namespace sbx::cli {
namespace {

using ::testing::HasSubstr;

// A host on which everything works; tests break one thing each.
class FakeHost final : public Host {
 public:
  FakeHost() {
    host_facts.ids = plan::IdMode::kSubordinate;
    host_facts.id_count = 65536;
    host_facts.sub_uid = host_facts.sub_gid = 165536;
    have_usual_limits();
  }

  std::string release = "6.1.0-18-amd64";
  uid_t user = 1000;
  std::map<std::string, std::string> files;
  std::string unreadable;
  plan::HostFacts host_facts;
  Act namespaces, proc, ids, time, memfd;
  Result<CgroupFacts> cgroup = CgroupFacts{"v2: memory cpu pids", true};
  Result<std::string> directory = std::string("/run/user/1000/sbx");
  bool has_newuidmap = true;
  Result<bool> has_name = true;
  int filter_errno = EFAULT;
  int action_errno = 0;
  int abi = 7;
  Result<plan::Image> image = image_in("/images/default/d1");
  std::map<std::string, PathFacts> paths = {{"/images/default/d1/rootfs", {0, 0755}},
                                            {"/images/default/d1/manifest.json", {0, 0644}}};
  IdRange mapped;

  void have_usual_limits() {
    host_facts.hard_nofile = 1024;
    host_facts.hard_fsize = plan::kNoLimit;
  }
  Result<void> proc_of_ours;

  Result<void> own_proc() override { return proc_of_ours; }
  std::string kernel_release() override { return release; }
  uid_t uid() override { return user; }
  plan::HostFacts facts(const policy::RuntimeConfig&) override { return host_facts; }
  void give_one_id_because(std::string detail) {
    host_facts = {};
    host_facts.id_detail = std::move(detail);
    have_usual_limits();
  }
  Result<std::string> read_file(const std::string& path) override {
    const auto found = files.find(path);
    if (path == unreadable) return host_lacks("open", EACCES, path, "");
    if (found == files.end()) return host_lacks("open", ENOENT, path, "");
    return found->second;
  }
  PathFacts path_facts(const std::string& path) override {
    const auto found = paths.find(path);
    return found == paths.end() ? PathFacts{ENOENT, 0} : found->second;
  }
  static plan::Image image_in(const std::string& directory) {
    plan::Image found;
    found.directory = directory;
    found.rootfs = directory + "/rootfs";
    return found;
  }
  Result<plan::Image> find_image(const std::string&, const policy::RuntimeConfig&) override {
    return image;
  }
  bool has_program(const std::string&) override { return has_newuidmap; }
  Result<bool> has_login_name() override { return has_name; }
  Act make_namespaces() override { return namespaces; }
  Act mount_proc() override { return proc; }
  Act map_ids(const IdRange& uids, const IdRange&) override {
    mapped = uids;
    return ids;
  }
  Act make_time_namespace() override { return time; }
  Act exec_memfd() override { return memfd; }
  Result<std::string> runtime_directory(const policy::RuntimeConfig&) override { return directory; }
  Result<CgroupFacts> make_cgroup(const policy::RuntimeConfig&) override { return cgroup; }
  int seccomp(unsigned, unsigned) override { return filter_errno; }
  int seccomp_action(std::uint32_t) override { return action_errno; }
  int landlock_abi() override { return abi; }
};

std::vector<Check> checks_of(FakeHost& host) {
  DoctorOptions options;
  options.config.image_dir = "/images";
  return run_checks(host, options);
}

Check check_of(FakeHost& host, const std::string& name) {
  for (Check& check : checks_of(host)) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "no check " << name;
  return {};
}

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

TEST(DoctorOnASimulatedHost, LimitsThatRefuseEveryRunAreNamed) {
  FakeHost host;
  host.host_facts.hard_nofile = 255;
  EXPECT_THAT(check_of(host, "rlimits").detail, HasSubstr("open files is 255"));
  EXPECT_THAT(check_of(host, "rlimits").fix, HasSubstr("ulimit -n 256"));
  host.host_facts.hard_nofile = 256;
  host.host_facts.hard_fsize = 32 * policy::kMiB;
  EXPECT_THAT(check_of(host, "rlimits").detail, HasSubstr("file's size is 32M"));
}

// A number below it means another process: nothing may be tried.
TEST(DoctorOnASimulatedHost, AProcOfAnotherPidNamespaceEndsTheSearch) {
  FakeHost host;
  host.proc_of_ours = host_lacks("proc", 0, "of another pid namespace", "mount one");
  const std::vector<Check> checks = checks_of(host);
  EXPECT_EQ(checks.back().name, "proc");
  EXPECT_EQ(checks.back().fix, "mount one");
  EXPECT_FALSE(all_required_hold(checks));
  EXPECT_EQ(host.mapped.count, 0U);
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

TEST(DoctorOnASimulatedHost, ANameThatCouldNotBeAskedForIsNotMade) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.has_name = host_lacks("getent", EAGAIN, "", "raise a limit");
  EXPECT_EQ(check_of(host, "subordinate_ids").fix, "raise a limit");
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

TEST(DoctorOnASimulatedHost, MissingSubordinateIdsDegradeAndRefuseNothing) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.files["/etc/passwd"] = "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n";
  const Check check = check_of(host, "subordinate_ids");
  EXPECT_EQ(check.state, CheckState::kDegraded);
  EXPECT_THAT(check.detail, HasSubstr("no subordinate ids"));
  EXPECT_EQ(check.fix,
            "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)");
  EXPECT_TRUE(all_required_hold(checks_of(host)));
}

TEST(DoctorOnASimulatedHost, TheIdsOfOthersAreNotGivenAway) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.files["/etc/passwd"] = "user:x:1000:1000::/home/user:/bin/sh\n";
  host.files["/etc/subuid"] = "other:100000:65536\n";
  host.files["/etc/subgid"] = "third:165536:65536\n";
  EXPECT_THAT(check_of(host, "subordinate_ids").fix,
              HasSubstr("--add-subuids 231072-296607 --add-subgids 231072-296607 "));
  host.files["/etc/passwd"] += "far:x:231072:1000::/:/bin/sh\n";
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("--add-subuids 231073-296608 "));
  host.files["/etc/passwd"].clear();
  host.user = 231100;
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("echo 231100:231101:65536 | sudo"));
  host.has_name = false;
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("--add-subgids 231101-296636 sbx-"));
}

TEST(DoctorOnASimulatedHost, WhereNoIdsAreFreeThatIsSaid) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.files["/etc/subgid"] = "other:100000:600000000\n";
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("no 65536 ids in a row are free"));
}

TEST(DoctorOnASimulatedHost, WithoutTheListOfThoseTakenNoIdsAreNamed) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.unreadable = "/etc/subgid";
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("let the caller read it: "));
}

TEST(DoctorOnASimulatedHost, AUserOfADirectoryServiceGetsHisIdsByNumber) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.files["/etc/passwd"] = "root:x:0:0::/root:/bin/sh\nother:x:10000:1000::/:/bin/sh\n";
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("echo 1000:100000:65536 | sudo"));
  host.files.clear();
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("echo 1000:100000:65536 | sudo"));
}

TEST(DoctorOnASimulatedHost, AUserWithoutANameIsGivenOne) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.has_name = false;
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("useradd --uid 1000"));
}

TEST(DoctorOnASimulatedHost, AMissingNewuidmapIsNamed) {
  FakeHost host;
  host.has_newuidmap = false;
  host.give_one_id_because("newuidmap is missing");
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("install uidmap"));
}

TEST(DoctorOnASimulatedHost, NoNewPrivsIsNamed) {
  FakeHost host;
  host.give_one_id_because("newuidmap cannot work under no_new_privs");
  const Check check = check_of(host, "subordinate_ids");
  EXPECT_EQ(check.state, CheckState::kDegraded);
  EXPECT_THAT(check.fix, HasSubstr("NoNewPrivileges=no"));
}

TEST(DoctorOnASimulatedHost, SubordinateIdsAreMappedAsARunMapsThem) {
  FakeHost host;
  EXPECT_EQ(check_of(host, "subordinate_ids").state, CheckState::kOk);
  EXPECT_EQ(host.mapped.first, 165536U);
  EXPECT_EQ(host.mapped.count, 65535U);
}

TEST(DoctorOnASimulatedHost, IdsThatCannotBeMappedRefuse) {
  FakeHost host;
  host.ids = {"newuidmap", EPERM};
  for (const uid_t user : {0U, 1000U}) {
    host.user = user;
    EXPECT_EQ(check_of(host, "subordinate_ids").state, CheckState::kMissing) << user;
    EXPECT_FALSE(all_required_hold(checks_of(host))) << user;
  }
}

TEST(DoctorOnASimulatedHost, RootNeedsNoSubordinateIds) {
  FakeHost host;
  host.user = 0;
  host.has_newuidmap = false;
  EXPECT_EQ(check_of(host, "subordinate_ids").state, CheckState::kOk);
  EXPECT_EQ(host.mapped.first, policy::RuntimeConfig{}.uid_base);
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

TEST(DoctorOnASimulatedHost, AnImageOfWhichAPartCannotBeLookedAtIsMissing) {
  const FakeHost good;
  for (const auto& [path, facts] : good.paths) {
    FakeHost host;
    host.paths[path] = {EACCES, 0};
    EXPECT_EQ(check_of(host, "image").state, CheckState::kMissing);
    EXPECT_EQ(check_of(host, "image").detail, path + ": Permission denied");
    EXPECT_THAT(check_of(host, "image").fix, HasSubstr("chmod a+rX"));
    host.paths[path] = {ENOENT, 0};
    EXPECT_EQ(check_of(host, "image").detail, path + ": No such file or directory");
    EXPECT_THAT(check_of(host, "image").fix, HasSubstr("scripts/image")) << "no mode helps";
  }
}

TEST(Doctor, TheRealHostAnswersEveryProbe) {
  const std::unique_ptr<Host> host = real_host();
  for (const Check& check : run_checks(*host, {})) {
    EXPECT_FALSE(check.name.empty());
    EXPECT_EQ(check.state == CheckState::kOk, check.fix.empty()) << check.name;
  }
}

}  // namespace
}  // namespace sbx::cli
