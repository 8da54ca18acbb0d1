// Setting up: what has gone wrong elsewhere while a sandbox was being built.
//
// Lines of the class that are shown elsewhere: cgroupfs under a decoy on the supervisor's side in
// tests/unit/cgroup/group_dir_test.cc; recycled pids and ten thousand killed children in
// killed_at_random_test.cc. The hostile client of a daemon belongs to the daemon's tests.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "runtime/base/sha256.h"
#include "runtime/base/sys.h"
#include "runtime/child/context.h"
#include "tests/adversarial/inside.h"
#include "tests/support/pty.h"

namespace sbx::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SettingUp : public InsideTest {};
SBX_AS_BOTH_CALLERS(SettingUp);

std::string hash_of(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto hash = sha256_of_file(fd.get(), fs::file_size(path));
  return hash ? *hash : "<" + to_string(hash.error()) + ">";
}

std::map<std::string, std::string> hashes_below(const fs::path& directory) {
  std::map<std::string, std::string> hashes;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.is_regular_file()) hashes[entry.path()] = hash_of(entry.path());
  }
  return hashes;
}

// The first child, and of that the first, …: sbx-run, its spawner, sbx-init.
pid_t descendant(pid_t pid, int generations) {
  for (; generations > 0 && pid > 0; --generations) {
    const std::string self = std::to_string(pid);
    const std::string children = read_text("/proc/" + self + "/task/" + self + "/children");
    pid = children.empty() ? -1 : std::stoi(children);
  }
  return pid;
}

TEST_P(SettingUp, NoBinaryOfTheRuntimeIsReachedThroughProcExe) {  // CVE-2019-5736
  const fs::path programs = fs::path(command({}).front()).parent_path();
  const auto before = hashes_below(programs);
  const json tried = attack({}, "reach_exe");
  EXPECT_EQ(tried["stdout"], "tried\n") << tried.dump();
  // The attack's other half: an interpreter line that makes the runtime's own binary the program.
  // It is sbx-init, which finds no plan there and ends.
  const std::string script = directory().write("self", "#!/proc/self/exe\n");
  const json itself = run_json({"--input", script, "--", "/input/self"});
  EXPECT_EQ(itself["status"], "exit") << itself.dump();
  EXPECT_EQ(itself["exit_code"], 1);
  EXPECT_EQ(itself["stdout"], "");
  EXPECT_EQ(hashes_below(programs), before);
}

TEST_P(SettingUp, WithoutASandboxARunningBinaryIsReachedAndChanged) {  // control of the above
  const std::string victim = directory().write("victim", read_text(program_path("parked")));
  ASSERT_EQ(::chmod(victim.c_str(), 0755), 0);
  if (is_user()) {
    ASSERT_EQ(::chown(victim.c_str(), kTestUser, kTestUser), 0);
  }
  const std::string attacker = directory().write("reach_exe", read_text(program_path("reach_exe")));
  ASSERT_EQ(::chmod(attacker.c_str(), 0755), 0);
  const std::string before = hash_of(victim);
  Process running({victim, "wait"}, options());
  ASSERT_TRUE(running.wait_for_output("up\n", std::chrono::seconds(20)));
  Process attack({attacker, std::to_string(running.pid())}, options());
  ASSERT_TRUE(attack.wait_for_output("held", std::chrono::seconds(20)));
  running.signal(SIGKILL);
  (void)running.finish();
  EXPECT_THAT(attack.finish().out, HasSubstr("wrote"));
  EXPECT_NE(hash_of(victim), before);
}

TEST_P(SettingUp, InitRunsFromASealedMemfd) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to look at sbx-init's binary";
  Process run(command(inside({"-t", "60"}, "parked", {"vfork"})), options());
  ASSERT_TRUE(run.wait_for_output("up\n", std::chrono::seconds(20)));
  const pid_t init = descendant(run.pid(), 2);
  const std::string exe = "/proc/" + std::to_string(init) + "/exe";
  EXPECT_THAT(fs::read_symlink(exe).string(), HasSubstr("/memfd:sbx-init"));
  const UniqueFd held(::open(exe.c_str(), O_RDONLY | O_CLOEXEC));
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  EXPECT_EQ(::fcntl(held.get(), F_GET_SEALS) & kSeals, kSeals);
  run.signal(SIGKILL);
  (void)run.finish();
  // Once it no longer runs, root may open it for writing, and the seal is what is left.
  const std::string path = "/proc/self/fd/" + std::to_string(held.get());
  const UniqueFd sealed(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::write(sealed.get(), "x", 1), -1);
  const UniqueFd plain(::memfd_create("control", MFD_CLOEXEC));
  const std::string plain_path = "/proc/self/fd/" + std::to_string(plain.get());
  const UniqueFd writable(::open(plain_path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::write(writable.get(), "x", 1), 1) << "control: a memfd without seals";
  (void)run_json({"--", "/bin/true"});  // removes what the killed one left
}

TEST_P(SettingUp, NoDescriptorOfTheCallersIsInherited) {  // CVE-2024-21626
  const UniqueFd directory_fd(::open(directory().path().c_str(), O_RDONLY | O_DIRECTORY));
  const UniqueFd middle_fd(::fcntl(directory_fd.get(), F_DUPFD, 200));
  const UniqueFd far_fd(::fcntl(middle_fd.get(), F_DUPFD, 900));
  ASSERT_TRUE(far_fd.valid());
  EXPECT_EQ(run(inside({}, "descriptors")).out, "pipe pipe pipe\ntried\n");
  const std::string control = outside("descriptors").out;
  for (const int fd : {directory_fd.get(), middle_fd.get(), far_fd.get()}) {
    const std::string number = std::to_string(fd);
    EXPECT_THAT(control, AllOf(HasSubstr("\n" + number + " open"), HasSubstr(number + " chdir"),
                               HasSubstr(number + " fchdir"), HasSubstr(number + " openat")))
        << "control";
  }
}

TEST_P(SettingUp, AWorkingDirectoryCannotBeAskedFor) {
  const Finished flag = run({"--cwd", "/proc/self/fd/7", "-c", "pass"});
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.err, HasSubstr("--cwd"));
  const std::string profile =
      directory().write("p.toml", "name = \"p\"\ndescription = \"x\"\ncwd = \"/proc/self/fd/7\"\n");
  const Finished key = run({"--profile", profile, "-c", "pass"});
  EXPECT_EQ(key.exit_code, 2);
  EXPECT_THAT(key.err, HasSubstr("cwd"));
}

// An image of a caller's own, in which one name is what an attacker made of it.
class EvilImage {
 public:
  explicit EvilImage(const TemporaryDirectory& directory)
      : data_(directory.path() + "/data"), rootfs_(data_ + "/sbx/images/evil/1/rootfs") {
    // The links are to be what is refused, and not that others could write above them.
    EXPECT_EQ(::chmod(directory.path().c_str(), 0755), 0);
    for (const char* name : {"dev", "proc", "tmp", "code", "input", "output", "work"}) {
      fs::create_directories(rootfs_ + "/" + name);
    }
    fs::create_symlink("1", data_ + "/sbx/images/evil/current");
  }
  void replace(const std::string& name, const std::string& target) {
    fs::remove(rootfs_ + "/" + name);
    fs::create_symlink(target, rootfs_ + "/" + name);
  }
  [[nodiscard]] const std::string& data() const { return data_; }
  [[nodiscard]] std::string at(const std::string& name) const { return rootfs_ + "/" + name; }

 private:
  std::string data_;
  std::string rootfs_;
};

// What a runtime does that trusts the image: a mount on the name, which follows the link. In a
// mount namespace of a child's own. True when the mount came to lie on `victim`.
bool naive_mount_reaches(const std::string& path, const std::string& victim) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool own = ::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
                     ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    const bool mounted = own && ::mount("naive", path.c_str(), "tmpfs", 0, nullptr) == 0;
    ::_exit(mounted && ::access((victim + "/canary").c_str(), F_OK) != 0 ? 0 : 1);
  }
  int status = -1;
  (void)::waitpid(child, &status, 0);
  return status == 0;
}

TEST_P(SettingUp, ARootfsOfLinksIsRefused) {  // CVE-2025-31133, CVE-2025-52565
  const std::string victim = directory().path() + "/victim";
  ASSERT_TRUE(fs::create_directory(victim));
  (void)directory().write("victim/canary", "unchanged");
  ProcessOptions with_image = options();
  for (const char* const name : {"dev", "proc", "tmp", "code", "input", "output", "work",  //
                                 "dev/null", "dev/console", "proc/sys", "proc/kcore"}) {
    const TemporaryDirectory place;
    EvilImage image(place);
    image.replace(name, victim);
    with_image.environment.push_back("XDG_DATA_HOME=" + image.data());
    const Finished refused =
        run_process(command({"--rootfs", "evil", "-l", "bash", "-c", "exit 0"}), with_image);
    EXPECT_EQ(refused.exit_code, 125) << name << ": " << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("fix: ")) << name;
    EXPECT_TRUE(naive_mount_reaches(image.at(name), victim)) << "control: " << name;
  }
  EXPECT_EQ(read_text(victim + "/canary"), "unchanged");
  const TemporaryDirectory place;
  const EvilImage harmless(place);
  with_image.environment.push_back("XDG_DATA_HOME=" + harmless.data());
  const Finished runs =
      run_process(command(inside({"--rootfs", "evil"}, "descriptors")), with_image);
  EXPECT_THAT(runs.out, HasSubstr("tried"))
      << "control: without links it is an image: " << runs.err;
}

// CVE-2025-52881: what is meant for /proc must not be written where something else lies.
TEST(Decoys, AWriteForProcIsNotMadeOnAnotherFileSystem) {
  const TemporaryDirectory decoy;
  ASSERT_TRUE(fs::create_directory(decoy.path() + "/self"));
  const std::string file = decoy.write("self/uid_map", "untouched");
  const UniqueFd elsewhere(::open(decoy.path().c_str(), O_PATH | O_CLOEXEC));
  child::Context context;
  context.proc = elsewhere.get();
  EXPECT_EQ(child::write_proc(context, "self/uid_map", "0 0 1", 5), -EOPNOTSUPP);
  EXPECT_EQ(read_text(file), "untouched");
  const UniqueFd proc(::open("/proc", O_PATH | O_CLOEXEC));
  context.proc = proc.get();
  const std::string same = read_text("/proc/self/coredump_filter");
  EXPECT_EQ(child::write_proc(context, "self/coredump_filter", same.c_str(), same.size()), 0)
      << "control: on /proc it is made";
}

// The same for cgroupfs: the descriptor that a run joins its group by is no cgroup's. In a child,
// since the payload finds it at a fixed number.
TEST(Decoys, AGroupIsNotJoinedThroughAnotherFileSystem) {
  const TemporaryDirectory decoy;
  const std::string file = decoy.write("tasks", "");
  const pid_t child = ::fork();
  if (child == 0) {
    const int tasks = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    static plan::FlatPlan plan;
    plan.join_count = 1;
    child::Context context;
    context.plan = &plan;
    const bool placed = ::dup2(tasks, plan::kSlotJoin) == plan::kSlotJoin;
    const bool refused = child::join_payload_cgroups(context) == -EOPNOTSUPP;
    const bool writable = ::write(plan::kSlotJoin, "control", 7) == 7;
    ::_exit(placed && refused && writable ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_text(file), "control") << "nothing but what the control wrote";
}

TEST_P(SettingUp, TheCallersTerminalCannotBeTypedInto) {  // CVE-2017-5226, CVE-2019-10063
  PtyProcess run(command(inside({}, "terminal")), options());
  const Finished tried = run.finish();
  EXPECT_EQ(tried.out, "tried\r\n");
  EXPECT_EQ(tried.exit_code, 0);
  EXPECT_EQ(run.typed(), 0);
  // The control's own terminal, which nobody reads. Who is not root may be refused by a sysctl too.
  if (::geteuid() != 0 && read_text("/proc/sys/dev/tty/legacy_tiocsti") == "0\n") {
    GTEST_SKIP() << "control: dev.tty.legacy_tiocsti lets root alone type into a terminal";
  }
  PtyProcess control({program_path("terminal")});
  EXPECT_THAT(control.finish().out, AllOf(HasSubstr("0 TIOCSTI 0"), HasSubstr("opened /dev/tty")));
  EXPECT_GT(control.typed(), 0) << "control: without a sandbox something was typed";
}

TEST_P(SettingUp, WhoeverStartsItTheProgramHasNoPower) {
  const std::string nobody =
      "uid 65534 65534 65534 gid 65534 65534 65534 other groups 0\n"
      "capabilities 0 0 0 bounding 0 ambient 0 no_new_privs 1\n";
  const json result = attack({}, "identity");
  EXPECT_THAT(result["stdout"].get<std::string>(),
              AllOf(::testing::StartsWith(nobody), Not(HasSubstr("got "))));
  const json hostile = attack({}, "identity", {"unshare"});
  EXPECT_EQ(hostile["status"], "security") << hostile.dump();
  EXPECT_EQ(hostile["denials"][0]["syscall"], "unshare");
  const std::string control = thrown_away("identity", {"unshare"}).out;
  EXPECT_THAT(control, AllOf(HasSubstr("got root\n"), HasSubstr("got user namespace"),
                             HasSubstr("got mount namespace"), HasSubstr("got mount\n")))
      << "control";
}

// What its caller may be above others by, or may make itself, is not the program's: no cgroup
// bounds a real-time policy.
class Priorities : public LeakFreeTest {};

// What a process is above others by, then what it may make itself.
std::string shown_by(const std::vector<std::string>& before, const std::string& program) {
  const std::string script =
      "import os, ctypes\n"
      "state = [os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0),\n"
      "         ctypes.CDLL(None).syscall(" +
      std::to_string(SYS_ioprio_get) +
      ", 1, 0) >> 13,\n"
      "         min(int(open('/proc/self/oom_score_adj').read()), 0),\n"
      "         open('/proc/self/personality').read().strip()]\n"
      "for make in (lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),\n"
      "             lambda: os.setpriority(os.PRIO_PROCESS, 0, -1)):\n"
      "  try: make(); state.append('made')\n"
      "  except PermissionError: state.append('refused')\n"
      "print(*state)\n";
  std::vector<std::string> words = before;
  words.insert(words.end(), {program, "-c", script});
  return run_process(words).out;
}

TEST_F(Priorities, OfTheCallersAreNotInherited) {
  if (::geteuid() != 0) GTEST_SKIP() << "takes root, to have them";
  const std::vector<std::string> weak = {"/usr/bin/setpriv", "--bounding-set", "-sys_nice",
                                         "--inh-caps", "-sys_nice"};
  std::vector<std::string> allowed = weak;
  allowed.insert(allowed.end(), {"/usr/bin/prlimit", "--rtprio=1:1", "--nice=25:25"});
  const std::vector<std::string> none;
  struct Case {
    std::vector<std::string> above, without;
  };
  int tried = 0;
  for (const Case& each : {Case{{"/usr/bin/chrt", "-f", "1"}, none},
                           {{"/usr/bin/chrt", "-r", "1"}, none},
                           {{"/usr/bin/nice", "-n", "-5"}, none},
                           {{"/usr/bin/ionice", "-c", "1"}, none},
                           {{"/usr/bin/choom", "-n", "-500", "--"}, none},
                           {{"/usr/bin/setarch", "-X"}, none},
                           {allowed, weak}}) {
    // Root of a container may not have it all.
    const std::string control = shown_by(each.above, "/usr/bin/python3");
    if (control.empty() || control == shown_by(each.without, "/usr/bin/python3")) continue;
    ++tried;
    EXPECT_EQ(shown_by(each.above, SBX_RUN_PATH), "0 0 0 0 00000000 refused refused\n")
        << each.above.front();
  }
  EXPECT_GT(tried, 2);
}

// Behind the filter stands the namespace that owns nothing and may have no others in it.
TEST_P(SettingUp, WithoutTheFilterNestedNamespacesAreRefusedAllTheSame) {
  const std::string profile =
      directory().write("unfiltered.toml", profile_text("", "allow = [\"unshare\", \"mount\"]\n"));
  const json result = attack({"--profile", profile}, "identity", {"unshare"});
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_THAT(result["stdout"].get<std::string>(),
              AllOf(HasSubstr("no user namespace: No space left on device"),
                    HasSubstr("no mount namespace: Operation not permitted"),
                    HasSubstr("no mount: Operation not permitted")));
}

std::map<std::string, std::string> tree_of(const fs::path& directory) {
  std::map<std::string, std::string> entries;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    entries[entry.path()] = entry.is_regular_file() ? read_text(entry.path()) : "directory";
  }
  return entries;
}

TEST_P(SettingUp, TheWorkspaceHoldsOnlyWhatTheProgramMade) {
  const std::string workspace = directory().path() + "/workspace";
  const std::string out = workspace + "/out";
  for (const std::string& path : {workspace, out}) {
    ASSERT_TRUE(fs::create_directory(path));
    ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  }
  const std::string data = directory().write("workspace/data.csv", "1,2\n");
  auto expected = tree_of(workspace);
  ProcessOptions here = options();
  here.directory = workspace;
  const auto words = [&](const std::string& program, const std::string& kind) {
    return command(inside({"--input", data, "--output-dir", out, "-t", "60"}, program, {kind}));
  };
  // Killed in the middle of the program's work, and right at the start.
  for (int i = 0; i < 20; ++i) {
    Process run(words("parked", "vfork"), here);
    if (i % 2 == 0) {
      ASSERT_TRUE(run.wait_for_output("up\n", std::chrono::seconds(20)));
    }
    run.signal(SIGKILL);
    EXPECT_EQ(run.finish().signal, SIGKILL);
    EXPECT_EQ(tree_of(workspace), expected) << i;
  }
  EXPECT_EQ(run_process(words("plant", "sparse"), here).exit_code, 128 + SIGXFSZ);
  expected[out + "/sparse"] = "";
  EXPECT_EQ(tree_of(workspace), expected);
  const Finished saved =
      run_process(command(inside({"--output-dir", out}, "plant", {"files", "a.txt"})), here);
  EXPECT_EQ(saved.exit_code, 0) << saved.err;
  expected[out + "/a.txt"] = "from inside";
  EXPECT_EQ(tree_of(workspace), expected);
  // Control: a guard file of a tool that is killed is seen by this way of looking.
  (void)directory().write("workspace/.guard", "");
  EXPECT_NE(tree_of(workspace), expected) << "control";
}

}  // namespace
}  // namespace sbx::test
