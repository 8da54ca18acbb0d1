// doctor on hosts that are made here: by a throw-away namespace, by a user without groups, by an
// image of another place. Each bad host is also mended, by the line that doctor prints where it is
// a command, and found good then.
//
// "Simulated" in a name: no kernel here lacks the facility, and a filter answers its system call
// instead. Hosts that take another kernel or a systemd are in tests/vm/guest/cases/doctor.sh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uid_t kStranger = 60452;  // nobody has made groups for him

class DoctorTest : public LeakFreeTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "takes root, to make other hosts";
  }

  // sbx-run doctor behind `before`, the words that make its host.
  json doctor(const std::vector<std::string>& before, const ProcessOptions& options = {},
              const std::vector<std::string>& after = {}) {
    std::vector<std::string> words = before;
    words.insert(words.end(), {SBX_RUN_PATH, "doctor", "--json"});
    words.insert(words.end(), after.begin(), after.end());
    const Finished finished = run_process(words, options);
    json report = json::parse(finished.out, nullptr, false);
    EXPECT_TRUE(report.is_object()) << finished.out << finished.err;
    if (!report.is_object()) return json::object();
    EXPECT_EQ(finished.exit_code, report["ok"] == true ? 0 : 1);
    return report;
  }

  // A shell with `script`, whose "$@" is doctor, as root of new namespaces of these kinds.
  json doctor_in(const std::vector<std::string>& kinds, const std::string& script) {
    std::vector<std::string> words = {"/usr/bin/unshare", "--user", "--map-root-user", "--fork"};
    words.insert(words.end(), kinds.begin(), kinds.end());
    words.insert(words.end(), {"/bin/sh", "-e", "-c", script + "; exec \"$@\"", "sh"});
    return doctor(words);
  }
};

json check_of(const json& report, const std::string& name) {
  for (const json& check : report.value("checks", json::array())) {
    if (check["name"] == name) return check;
  }
  ADD_FAILURE() << "no check " << name << " in " << report;
  return {{"state", ""}, {"detail", ""}, {"fix", ""}};
}

void expect_missing(const json& check, const std::string& fix) {
  EXPECT_EQ(check["state"], "missing") << check;
  EXPECT_THAT(check["fix"].get<std::string>(), HasSubstr(fix));
}

// The command in a fix, as it is typed by somebody who is root already.
std::string command_of(const json& check) {
  std::string fix = check["fix"];
  for (const std::string prefix : {"sudo ", "as root: "}) {
    if (fix.starts_with(prefix)) fix.erase(0, prefix.size());
  }
  return fix;
}

// An image of its own, found through a configuration of its own.
class OwnImage {
 public:
  explicit OwnImage(const std::string& manifest = R"({"packages": {}})") {
    EXPECT_EQ(::chmod(directory_.path().c_str(), 0755), 0);  // what is above the images counts too
    for (const char* const name :
         {"dev", "proc", "tmp", "code", "input", "output", "work", "usr/bin"}) {
      std::filesystem::create_directories(rootfs() + "/" + name);
    }
    std::filesystem::create_directory_symlink("1", images() + "/default/current");
    std::filesystem::create_directories(directory_.path() + "/config/sbx");
    (void)directory_.write("images/default/1/manifest.json", manifest);
    (void)directory_.write("config/sbx/runtime.toml", "image_dir = \"" + images() + "\"\n");
    options_.environment = {"XDG_CONFIG_HOME=" + directory_.path() + "/config"};
  }
  // The host's bash with what it is linked to, as the image's.
  void take_bash() const {
    const Finished linked =
        run_process({"/bin/sh", "-e", "-c",
                     "for f in /bin/bash $(ldd /bin/bash | grep -o '/[^ ]*'); do "
                     "mkdir -p \"$1/usr$(dirname $f)\"; cp -L $f \"$1/usr$f\"; done; "
                     "for d in lib lib64; do [ ! -d $1/usr/$d ] || ln -s usr/$d $1/$d; done; "
                     "chmod -R a+rX $1",
                     "sh", rootfs()});
    EXPECT_EQ(linked.exit_code, 0) << linked.err;
  }
  [[nodiscard]] const std::string& top() const { return directory_.path(); }
  [[nodiscard]] std::string images() const { return directory_.path() + "/images"; }
  [[nodiscard]] std::string rootfs() const { return images() + "/default/1/rootfs"; }
  [[nodiscard]] const ProcessOptions& options() const { return options_; }

 private:
  TemporaryDirectory directory_;
  ProcessOptions options_;
};

constexpr const char* kBashManifest = R"({"packages": {"debian": {"bash": "5"}}})";

bool is_v1_host() {
  return std::filesystem::exists("/sys/fs/cgroup/memory/cgroup.procs");
}

TEST_F(DoctorTest, RootOnThisHostHasEverything) {
  const json report = doctor({});
  EXPECT_EQ(report["ok"], true) << report;
  EXPECT_THAT(check_of(report, "cgroup")["detail"].get<std::string>(),
              StartsWith(is_v1_host() ? "v1: " : "v2: "));
}

// A plain file in the place of /dev/null would be read by every program, also where files are
// masked with it; a device that is missing is named, by the run too.
TEST_F(DoctorTest, DevicesThatAreNotThoseAreNamedByDoctorAndByTheRun) {
  const TemporaryDirectory directory;
  const auto with = [&](const std::string& change, const std::vector<std::string>& words) {
    const std::string script =
        "mount -t tmpfs none \"$0\"; cd \"$0\"; for d in null zero full random urandom; do "
        "touch $d; mount --bind /dev/$d $d; done; " +
        change + "; mount --rbind . /dev; exec \"$@\"";
    std::vector<std::string> all = {"/usr/bin/unshare", "--mount",   "/bin/sh", "-e", "-c", script,
                                    directory.path(),   SBX_RUN_PATH};
    all.insert(all.end(), words.begin(), words.end());
    return run_process(all);
  };
  EXPECT_EQ(with("true", {"-c", "pass"}).exit_code, 0) << "control";
  for (const auto& [change, device] : {std::pair{"umount full; rm full", "/dev/full"},
                                       {"umount null; rm null", "/dev/null"},
                                       {"umount null; echo secret > null", "/dev/null"},
                                       {"umount zero; mount --bind null zero", "/dev/zero"}}) {
    const Finished doctor = with(change, {"doctor"});
    EXPECT_EQ(doctor.exit_code, 1) << change;
    EXPECT_THAT(doctor.out, AllOf(HasSubstr(device), HasSubstr("mknod -m 666 ")));
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"-c", "pass"}, {"explain", "-c", "pass"}}) {
      const Finished run = with(change, words);
      EXPECT_EQ(run.exit_code, 125) << change;
      EXPECT_THAT(run.err, AllOf(HasSubstr(device), HasSubstr("fix: "))) << words.front();
    }
  }
}

// What a plan cannot tell is tried, and no layer is called held on a host that refuses each run.
TEST_F(DoctorTest, ExplainRefusesWhereTheHostDoes) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-c", "pass"}, {"explain", "-c", "pass"}}) {
    std::vector<std::string> all = {"/usr/bin/setpriv", "--bounding-set", "-all",
                                    "--inh-caps",       "-all",           SBX_RUN_PATH};
    all.insert(all.end(), words.begin(), words.end());
    const Finished finished = run_process(all);
    EXPECT_EQ(finished.exit_code, 125) << words.front() << finished.out;
    EXPECT_THAT(finished.err, HasSubstr("fix: ")) << words.front();
  }
}

TEST_F(DoctorTest, AUserWithoutGroupsOnV1IsGivenThemByTheFix) {
  if (!is_v1_host()) GTEST_SKIP() << "no cgroup v1: the guest tests show it on v2";
  const UserGround ground;  // for its copy of sbx-run, which he can reach
  ASSERT_EQ(ground.trouble(), "");
  ProcessOptions stranger;
  stranger.uid = kStranger;
  const auto check = [&] {
    const Finished finished = run_process({ground.program(), "doctor", "--json"}, stranger);
    return check_of(json::parse(finished.out, nullptr, false), "cgroup");
  };
  const json before = check();
  expect_missing(before, "as root: for c in memory pids cpu cpuacct");
  const Finished mended = run_process({"/bin/sh", "-e", "-c", command_of(before)});
  EXPECT_EQ(mended.exit_code, 0) << mended.err;
  EXPECT_EQ(check()["state"], "ok");
  for (const char* const controller : {"memory", "pids", "cpu", "cpuacct"}) {
    const std::string group =
        std::string("/sys/fs/cgroup/") + controller + "/sbx-" + std::to_string(kStranger);
    EXPECT_TRUE(::rmdir(group.c_str()) == 0 || errno == ENOENT) << group;  // one may be a link
  }
}

// Whoever owns it could read the records and forge them: no run, and both say what to do.
TEST_F(DoctorTest, ARuntimeDirectoryOfSomebodyElseIsRefusedUntilTheFixPutsItAway) {
  const UserGround ground;  // for its copy of sbx-run, which he can reach
  const std::string path = "/tmp/sbx-" + std::to_string(kStranger);
  std::filesystem::remove_all(path);
  ProcessOptions stranger;
  stranger.uid = kStranger;
  stranger.environment = {"XDG_RUNTIME_DIR="};
  const auto check = [&] {
    const Finished finished = run_process({ground.program(), "doctor", "--json"}, stranger);
    return check_of(json::parse(finished.out, nullptr, false), "runtime_directory");
  };
  const auto run = [&] {
    return run_process(
        {ground.program(), "--rootfs", "host", "--allow-missing", "cgroup", "--", "/bin/true"},
        stranger);
  };
  EXPECT_EQ(check()["state"], "ok");
  EXPECT_FALSE(std::filesystem::exists(path)) << "doctor leaves nothing behind";
  EXPECT_EQ(run().exit_code, 0) << "control";
  EXPECT_EQ(check()["state"], "ok");
  for (const char* const make :
       {"mkdir -m 0700 $0", "mkdir -m 1777 $0", "ln -s /var/tmp $0", "mkdir $0; chown 1 $0",
        "mkdir $0; chown 60452 $0; chmod 777 $0"}) {
    std::filesystem::remove_all(path);
    ASSERT_EQ(run_process({"/bin/sh", "-e", "-c", make, path}).exit_code, 0);
    const json found = check();
    expect_missing(found, "sudo rm -r " + path);
    EXPECT_THAT(found["detail"].get<std::string>(), HasSubstr(path)) << make;
    const Finished refused = run();
    EXPECT_EQ(refused.exit_code, 125) << make;
    EXPECT_THAT(refused.err, AllOf(HasSubstr(path), HasSubstr("fix: sudo rm -r "))) << make;
    EXPECT_EQ(run_process({"/bin/sh", "-e", "-c", command_of(found)}).exit_code, 0) << make;
    EXPECT_EQ(check()["state"], "ok") << make;
  }
}

// Full of bytes, and full of files.
TEST_F(DoctorTest, ARuntimeDirectoryOnAFullDiskIsNamedByDoctorAndByTheRun) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/full";
  std::filesystem::create_directories(path);
  std::filesystem::create_directories(directory.path() + "/config/sbx");
  (void)directory.write("config/sbx/runtime.toml", "runtime_dir = \"" + path + "\"\n");
  ProcessOptions options;
  options.environment = {"XDG_CONFIG_HOME=" + directory.path() + "/config"};
  for (const char* const fill :
       {"mkdir $0/runs $0/ids; ! head -c 2M /dev/zero > $0/fill",
        "! head -c 2M /dev/zero > $0/fill",
        "mkdir $0/runs $0/ids; for i in $(seq 90); do : > $0/$i || break; done"}) {
    const std::string make =
        "umask 077; mount -t tmpfs -o size=1M,nr_inodes=64,mode=700 full $0; (" +
        std::string(fill) + ") 2> /dev/null || :; exec \"$@\"";
    const std::vector<std::string> before = {
        "/usr/bin/unshare", "--mount", "/bin/sh", "-e", "-c", make, path};
    const json found = check_of(doctor(before, options), "runtime_directory");
    expect_missing(found, "make room on the file system");
    EXPECT_THAT(found["detail"].get<std::string>(), HasSubstr(path)) << fill;
    std::vector<std::string> run = before;
    run.insert(run.end(), {SBX_RUN_PATH, "--rootfs", "host", "--", "/bin/true"});
    const Finished refused = run_process(run, options);
    EXPECT_EQ(refused.exit_code, 125) << fill;
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr(path), HasSubstr("fix: make room on the file system")));
  }
}

TEST_F(DoctorTest, UserNamespacesForbiddenBySysctlAreAllowedByTheFix) {
  const std::string forbid = "echo 0 > /proc/sys/user/max_user_namespaces";
  const json check = check_of(doctor_in({"--mount"}, forbid), "namespaces");
  expect_missing(check, "sysctl -w user.max_user_namespaces=");
  const json after = doctor_in({"--mount"}, forbid + "; " + command_of(check) + " > /dev/null");
  EXPECT_EQ(check_of(after, "namespaces")["state"], "ok");
}

TEST_F(DoctorTest, EachOtherKindOfNamespaceForbiddenBySysctlIsNamed) {
  for (const std::string kind : {"mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
    const std::string forbid = "echo 0 > /proc/sys/user/max_" + kind + "_namespaces";
    expect_missing(check_of(doctor_in({"--mount"}, forbid), "namespaces"),
                   "sysctl -w user.max_" + kind + "_namespaces=");
  }
}

TEST_F(DoctorTest, MemfdsThatCannotBeExecutedAreAllowedByTheFix) {
  if (::access("/proc/sys/vm/memfd_noexec", F_OK) != 0) {
    GTEST_SKIP() << "this kernel has no vm.memfd_noexec (Linux 6.3)";
  }
  // The setting is the pid namespace's own.
  const std::vector<std::string> kinds = {"--pid", "--mount-proc"};
  const std::string forbid = "echo 2 > /proc/sys/vm/memfd_noexec";
  const json check = check_of(doctor_in(kinds, forbid), "memfd_exec");
  expect_missing(check, "sysctl -w vm.memfd_noexec=1");
  const json after = doctor_in(kinds, forbid + "; " + command_of(check) + " > /dev/null");
  EXPECT_EQ(check_of(after, "memfd_exec")["state"], "ok");
}

TEST_F(DoctorTest, AMaskedProcIsNamedAndSeenAgainWithoutTheMask) {
  const std::string mask = "mount -t tmpfs mask /proc/sys/kernel";
  const json check = check_of(doctor_in({"--mount"}, mask), "proc");
  expect_missing(check, "systempaths=unconfined");
  EXPECT_THAT(check["detail"].get<std::string>(), HasSubstr("/proc/sys/kernel"));
  const json after = doctor_in({"--mount"}, mask + "; umount /proc/sys/kernel");
  EXPECT_EQ(check_of(after, "proc")["state"], "ok");
}

TEST_F(DoctorTest, ARootOfOneIdIsToldThatHisRunsNeedMore) {
  const json check = check_of(doctor_in({"--mount"}, ":"), "subordinate_ids");
  expect_missing(check, "uid_base");
}

TEST_F(DoctorTest, AnImageThatIsNotThereIsMissingAndTheHostsOwnUsrServes) {
  expect_missing(check_of(doctor({}, {}, {"--rootfs", "nowhere"}), "image"), "--rootfs host");
  EXPECT_EQ(check_of(doctor({}, {}, {"--rootfs", "host"}), "image")["state"], "ok");
}

// Whoever can write to it decides what runs: no run, and both say what to do.
TEST_F(DoctorTest, AnImageThatSomebodyElseCouldChangeIsRefusedUntilTheFix) {
  const OwnImage image;
  const std::string images = image.images();
  const std::string rootfs = image.rootfs();
  const ProcessOptions& options = image.options();
  const auto run = [&] { return run_process({SBX_RUN_PATH, "--", "/nothing"}, options); };
  EXPECT_EQ(check_of(doctor({}, options), "image")["state"], "ok");
  EXPECT_EQ(run().exit_code, 127) << "control: the run takes place, and finds no such program";
  for (const std::string& path : {images, images + "/default", images + "/default/1", rootfs}) {
    for (const char* const open : {"chmod o+w $0", "chmod g+w $0", "chown -R 60452 $0"}) {
      ASSERT_EQ(run_process({"/bin/sh", "-e", "-c", open, path}).exit_code, 0);
      const json found = check_of(doctor({}, options), "image");
      expect_missing(found, "# if you trust what is in it");
      const Finished refused = run();
      EXPECT_EQ(refused.exit_code, 125) << open << " " << path;
      EXPECT_THAT(refused.err, AllOf(HasSubstr(path), HasSubstr("fix: ch"))) << open;
      EXPECT_EQ(run_process({"/bin/sh", "-e", "-c", command_of(found)}).exit_code, 0);
      EXPECT_EQ(check_of(doctor({}, options), "image")["state"], "ok") << open << " " << path;
    }
  }
  EXPECT_EQ(run().exit_code, 127);
  // Below its top only doctor looks.
  ASSERT_EQ(::chmod((rootfs + "/usr").c_str(), 0777), 0);
  const json below = check_of(doctor({}, options), "image");
  EXPECT_EQ(below["state"], "degraded") << below;
  EXPECT_EQ(run().exit_code, 127);
  EXPECT_EQ(run_process({"/bin/sh", "-e", "-c", command_of(below)}).exit_code, 0);
  EXPECT_EQ(check_of(doctor({}, options), "image")["state"], "ok");
  ASSERT_EQ(::chmod(image.top().c_str(), 0777), 0);
  const json found = check_of(doctor({}, options), "image");
  expect_missing(found, "chmod go-w " + image.top());
  EXPECT_EQ(run().exit_code, 125);
  EXPECT_EQ(run_process({"/bin/sh", "-e", "-c", command_of(found)}).exit_code, 0);
  EXPECT_EQ(run().exit_code, 127);
}

// The interpreter is the image's to have: a broken image is no fault of the program's.
TEST_F(DoctorTest, AnImageWithoutItsInterpreterIsNamedByDoctorAndByTheRun) {
  const OwnImage image(kBashManifest);
  const json check = check_of(doctor({}, image.options()), "image");
  expect_missing(check, "./scripts/image --force");
  EXPECT_THAT(check["detail"].get<std::string>(),
              HasSubstr("/rootfs/usr/bin/bash, which runs bash"));
  const Finished run = run_process({SBX_RUN_PATH, "-l", "bash", "-c", "true"}, image.options());
  EXPECT_EQ(run.exit_code, 125);
  EXPECT_THAT(run.err, AllOf(HasSubstr("/usr/bin/bash: No such file or directory"),
                             HasSubstr("fix: rebuild the image: ./scripts/image --force")));
  const Finished named = run_process({SBX_RUN_PATH, "--", "/usr/bin/bash"}, image.options());
  EXPECT_EQ(named.exit_code, 127) << "what the caller names is his";
}

// What an interpreter needs is found by running it alone.
TEST_F(DoctorTest, AnImageWhoseInterpreterCannotRunIsMissing) {
  const OwnImage image(kBashManifest);
  image.take_bash();
  const auto run_check = [&] { return check_of(doctor({}, image.options()), "run"); };
  EXPECT_EQ(run_check()["state"], "ok") << run_check();
  EXPECT_EQ(run_check()["detail"], "an empty program of bash");
  const std::string bash = image.rootfs() + "/usr/bin/bash";
  const std::string libraries = image.rootfs() + "/usr/lib";
  for (const mode_t shut : {0750U, 0755U}) {
    ASSERT_EQ(::chmod(libraries.c_str(), shut), 0);
    EXPECT_EQ(run_check()["state"], shut == 0750 ? "missing" : "ok") << run_check();
  }
  std::filesystem::rename(libraries, image.rootfs() + "/usr/elsewhere");
  expect_missing(run_check(), "./scripts/image --force");
  std::filesystem::rename(image.rootfs() + "/usr/elsewhere", libraries);
  for (const char* const content : {"", "#!/nope\n"}) {
    const std::string kept = bash + ".kept";
    std::filesystem::rename(bash, kept);
    std::ofstream(bash) << content;
    ASSERT_EQ(::chmod(bash.c_str(), 0755), 0);
    expect_missing(run_check(), "./scripts/image --force");
    std::filesystem::rename(kept, bash);
  }
  EXPECT_EQ(run_check()["state"], "ok");
}

TEST_F(DoctorTest, AnImageThatOthersCannotReadIsMissingUntilItsModeIsMended) {
  const OwnImage image;
  ASSERT_EQ(::chmod(image.rootfs().c_str(), 0700), 0);
  const json check = check_of(doctor({}, image.options()), "image");
  expect_missing(check, "chmod a+rX");
  EXPECT_THAT(check["detail"].get<std::string>(), HasSubstr(image.rootfs()));
  ASSERT_EQ(run_process({"/bin/chmod", "a+rX", image.rootfs()}).exit_code, 0);
  EXPECT_EQ(check_of(doctor({}, image.options()), "image")["state"], "ok");
}

// What an interpreter has too little of is no fault of the image's.
TEST_F(DoctorTest, AnInterpreterThatTheCallersLimitsLeaveNoMemoryIsToldSo) {
  const json run = check_of(doctor({"/usr/bin/prlimit", "--data=3000000:3000000"}), "run");
  expect_missing(run, "a limit of whoever starts it");
  EXPECT_THAT(run["detail"].get<std::string>(), HasSubstr("ulimit -d"));
}

// A user whose limits leave no process to try anything in: no fix of a probe helps, and a run says
// the same as doctor.
TEST_F(DoctorTest, WhatTheCallersLimitsLeaveNoRoomToTryIsUntriedUntilTheyAreRaised) {
  const UserGround ground;  // for its copy of sbx-run, which he can reach
  ProcessOptions stranger;
  stranger.uid = kStranger;
  const auto doctor_under = [&](const char* limit) {
    const Finished finished =
        run_process({"/usr/bin/prlimit", limit, ground.program(), "doctor", "--json"}, stranger);
    EXPECT_EQ(finished.exit_code, 1) << finished.err;
    return json::parse(finished.out, nullptr, false);
  };
  const auto expect_untried = [](const json& check, const char* fix) {
    EXPECT_EQ(check["state"], "untried") << check;
    EXPECT_THAT(check["fix"].get<std::string>(), HasSubstr(fix));
  };
  const json without_process = doctor_under("--nproc=1:1");
  for (const char* const name : {"namespaces", "proc", "memfd_exec"}) {
    expect_untried(check_of(without_process, name), "ulimit -u");
  }
  const Finished refused =
      run_process({"/usr/bin/prlimit", "--nproc=1:1", ground.program(), "--rootfs", "host",
                   "--allow-missing", "cgroup", "--", "/bin/true"},
                  stranger);
  EXPECT_EQ(refused.exit_code, 125);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("fork: spawner: "), HasSubstr("fix: "), HasSubstr("ulimit -u")));
  const json after = doctor_under("--nproc=100:100");
  for (const char* const name : {"namespaces", "proc", "memfd_exec"}) {
    EXPECT_EQ(check_of(after, name)["state"], "ok") << name;
  }
}

// A system call and the errno that a kernel without it, or a container's filter, gives.
struct Denied {
  long number;
  int error;
  std::string check;
  std::string fix;
  bool required;
};

TEST_F(DoctorTest, WhatAFilterTakesAwayIsNamedSimulated) {
  const Denied all[] = {
      {SYS_seccomp, ENOSYS, "seccomp", "CONFIG_SECCOMP_FILTER", true},
      {SYS_seccomp, EINVAL, "seccomp", "5.19", true},
      {SYS_unshare, EPERM, "namespaces", "no seccomp filter on unshare", true},
      {SYS_memfd_create, EACCES, "memfd_exec", "an LSM or a seccomp filter forbids", true},
      {SYS_fsopen, EPERM, "proc", "", true},
      {SYS_landlock_create_ruleset, ENOSYS, "landlock", "CONFIG_SECURITY_LANDLOCK", false},
      {SYS_landlock_create_ruleset, EOPNOTSUPP, "landlock", "lsm=", false},
  };
  for (const Denied& denied : all) {
    const json report = doctor({std::string(SBX_TEST_PROGRAMS) + "/deny_call",
                                std::to_string(denied.number), std::to_string(denied.error)});
    expect_missing(check_of(report, denied.check), denied.fix);
    EXPECT_EQ(report["ok"], !denied.required) << denied.check;
  }
}

}  // namespace
}  // namespace sbx::test
