// The Host that is really there: each method is the act itself.
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "runtime/base/own_limits.h"
#include "runtime/base/sys.h"
#include "runtime/cgroup/driver.h"
#include "runtime/cli/doctor_rootfs.h"
#include "runtime/cli/doctor_run.h"
#include "runtime/cli/host.h"
#include "runtime/cli/in_child.h"
#include "runtime/cli/probe_program.h"
#include "runtime/spawn/records.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080  // Linux 5.6
#endif

namespace sbx::cli {
namespace {

constexpr std::size_t kMaxHostFile = 1024 * 1024;

std::string find_program(const std::string& name) {
  for (const char* const directory : {"/usr/bin/", "/bin/", "/usr/local/bin/", "/usr/sbin/"}) {
    std::string path = directory + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

Act private_mounts() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return failed("make mounts private");
  }
  return {};
}

using Enter = Act (*)();

Act enter_as_self() {
  return enter_user_namespace(0);
}

// An act that begins in an outer user namespace. Root of a user namespace may have no id but his
// own to map there, and root of the host not the right to map that.
Act in_outer_namespace(Act (*act)(Enter)) {
  Act done = in_child([act] { return act(enter_as_self); });
  if (done.ok() || ::geteuid() != 0) return done;
  return in_child([act] { return act(enter_user_namespace_as_nobody); }).ok() ? Act{} : done;
}

Act all_namespaces(Enter enter) {
  struct Kind {
    int flag;
    const char* step;
  };
  constexpr std::array kKinds = {
      Kind{CLONE_NEWNS, "unshare mount"}, Kind{CLONE_NEWPID, "unshare pid"},
      Kind{CLONE_NEWNET, "unshare net"},  Kind{CLONE_NEWIPC, "unshare ipc"},
      Kind{CLONE_NEWUTS, "unshare uts"},  Kind{CLONE_NEWCGROUP, "unshare cgroup"},
  };
  if (Act act = enter(); !act.ok()) return act;
  for (const Kind& kind : kKinds) {
    if (::unshare(kind.flag) != 0) return failed(kind.step);
  }
  if (Act act = private_mounts(); !act.ok()) return act;
  Act nested = enter_user_namespace(65534);
  if (!nested.ok()) nested.failed_step += " (nested)";
  return nested;
}

// In the first process of a new pid namespace: the mount that sbx-init makes.
Act new_proc() {
  const auto fsopen = [](const char* type) {
    return static_cast<int>(::syscall(SYS_fsopen, type, 1U));  // FSOPEN_CLOEXEC
  };
  const UniqueFd context(fsopen("proc"));
  if (!context) return failed("fsopen proc");
  constexpr unsigned kSetString = 1;  // FSCONFIG_SET_STRING
  constexpr unsigned kCreate = 6;     // FSCONFIG_CMD_CREATE
  if (::syscall(SYS_fsconfig, context.get(), kSetString, "hidepid", "invisible", 0) != 0) {
    return failed("fsconfig hidepid");
  }
  if (::syscall(SYS_fsconfig, context.get(), kCreate, nullptr, nullptr, 0) != 0) {
    return failed("fsconfig create");
  }
  const UniqueFd mount(static_cast<int>(::syscall(SYS_fsmount, context.get(), 1U, 0U)));
  return mount ? Act{} : failed("fsmount proc");
}

Act proc_in_new_namespaces(Enter enter) {
  if (Act act = enter(); !act.ok()) return act;
  if (::unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) return failed("unshare mount, pid");
  if (Act act = private_mounts(); !act.ok()) return act;
  return in_child(new_proc);  // its first child is pid 1 of the new namespace
}

Act map_directly(pid_t pid, const IdRange& uids, const IdRange& gids) {
  const auto write_map = [pid](const char* name, const IdRange& range) {
    return write_proc(fmt::format("/proc/{}/{}", pid, name).c_str(),
                      fmt::format("0 {} {}", range.first, range.count));
  };
  if (!write_map("uid_map", uids)) return failed("write uid_map");
  if (!write_map("gid_map", gids)) return failed("write gid_map");
  return {};
}

// With less of addresses or data a dynamic program and its libraries may not start; with so much it
// failed for a reason of its own.
constexpr rlim_t kEnoughToStart = 64 * policy::kMiB;

// The errno for which a program did not start; 0: it did. One that finds no room for its own data
// is ended by the kernel, and by its loader if it is a dynamic one.
int start_errno(int code) {
  constexpr int kLoaderFailed = 127;
  if (code < 0) return -code;
  if (code != kLoaderFailed && code != 128 + SIGSEGV && code != 128 + SIGKILL) return 0;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur < kEnoughToStart) return ENOMEM;
  }
  return 0;
}

Act map_by_program(const char* name, pid_t pid, unsigned own, const IdRange& range) {
  const int code =
      run_quietly({find_program(name), fmt::format("{}", pid), "0", fmt::format("{}", own), "1",
                   "1", fmt::format("{}", range.first), fmt::format("{}", range.count)});
  if (code == 0) return {};
  const int not_started = start_errno(code);
  return {name, not_started != 0 ? not_started : EPERM};
}

Act time_namespace(Enter enter) {
  if (Act act = enter(); !act.ok()) return act;
  if (::unshare(CLONE_NEWTIME) != 0) return failed("unshare time");
  if (!write_proc("/proc/self/timens_offsets", "monotonic 1000 0")) {
    return failed("write timens_offsets");
  }
  return {};
}

class RealHost final : public Host {
 public:
  std::string kernel_release() override {
    utsname name{};
    return ::uname(&name) == 0 ? std::string(name.release) : std::string();
  }
  uid_t uid() override { return ::geteuid(); }
  plan::HostFacts facts(const policy::RuntimeConfig& config) override {
    return plan::read_host_facts(config, 0);
  }
  Result<void> own_proc() override { return sys::check_own_proc(); }
  Result<void> own_devices() override { return plan::check_devices(); }
  Result<std::string> read_file(const std::string& path) override {
    return sys::read_file(path, kMaxHostFile);
  }
  PathFacts path_facts(const std::string& path) override {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return {errno, 0};
    return {0, status.st_mode};
  }
  Result<plan::Image> find_image(const std::string& name,
                                 const policy::RuntimeConfig& config) override {
    return plan::find_image(name, config);
  }
  Result<void> check_manifest(const plan::Image& image) override {
    return plan::check_manifest(image);
  }
  Result<void> check_interpreters(const plan::Image& image) override {
    return cli::check_interpreters(image);
  }
  Result<void> check_contents(const plan::Image& image) override {
    return cli::check_contents(image);
  }
  bool has_program(const std::string& name) override { return !find_program(name).empty(); }
  // A program is asked, since this one is static and has no NSS.
  Result<bool> has_login_name() override {
    const int code = run_quietly({find_program("getent"), "passwd", fmt::format("{}", uid())});
    if (const int error = start_errno(code); !scarcity_fix(error).empty()) {
      return host_lacks("getent", error, "", scarcity_fix(error));
    }
    return code == 0;
  }

  Result<std::vector<std::string>> run_languages(const std::string& rootfs,
                                                 const policy::RuntimeConfig& config) override {
    return cli::run_languages(rootfs, config);
  }
  Act make_namespaces() override { return in_outer_namespace(all_namespaces); }
  Act mount_proc() override { return in_outer_namespace(proc_in_new_namespaces); }
  Act make_time_namespace() override { return in_outer_namespace(time_namespace); }
  Act map_ids(const IdRange& uids, const IdRange& gids) override;
  Act exec_memfd() override;
  Result<std::string> runtime_directory(const policy::RuntimeConfig& config) override;
  Result<CgroupFacts> make_cgroup(const policy::RuntimeConfig& config) override;

  int seccomp(unsigned operation, unsigned flags) override {
    return ::syscall(SYS_seccomp, operation, flags, nullptr) == 0 ? 0 : errno;
  }
  int seccomp_action(std::uint32_t action) override {
    return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0 ? 0 : errno;
  }
  int landlock_abi() override {
    const long abi =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? -errno : static_cast<int>(abi);
  }
};

Act RealHost::map_ids(const IdRange& uids, const IdRange& gids) {
  const WaitingChild child(
      [] { return ::unshare(CLONE_NEWUSER) == 0 ? Act{} : failed("unshare user"); });
  if (!child.act().ok()) return child.act();
  if (uid() == 0) return map_directly(child.pid(), uids, gids);
  if (Act act = map_by_program("newuidmap", child.pid(), ::geteuid(), uids); !act.ok()) return act;
  return map_by_program("newgidmap", child.pid(), ::getegid(), gids);
}

Act RealHost::exec_memfd() {
  return in_child([] {
    Result<UniqueFd> program = sys::sealed_memfd("sbx-doctor", probe_program(), true);
    if (!program) return Act{"memfd_create", program.error().sys_errno};
    // Its exec must succeed, and nothing of its output is wanted: a grandchild does it.
    const int fd = program->get();
    const int code = run_quietly({fmt::format("/proc/self/fd/{}", fd), "nothing"});
    if (code == 0) return Act{};
    const int not_started = start_errno(code);
    return Act{"execute a memfd", not_started != 0 ? not_started : EACCES};
  });
}

Result<std::string> RealHost::runtime_directory(const policy::RuntimeConfig& config) {
  if (auto checked = spawn::RuntimeDirectory::check(config.runtime_dir); !checked) {
    return name_scarcity(std::move(checked).error());
  }
  return spawn::RuntimeDirectory::path_for(config.runtime_dir);
}

Result<CgroupFacts> RealHost::make_cgroup(const policy::RuntimeConfig& config) {
  cgroup::DriverOptions options;
  options.parent = config.cgroup_parent;
  options.owner_uid = uid() == 0 ? config.uid_base : uid();
  options.owner_gid = uid() == 0 ? config.uid_base : ::getegid();
  SBX_ASSIGN(const std::unique_ptr<cgroup::Driver> driver, cgroup::choose_driver(options));
  // With a record, as a run's: should we die now, the next run removes it.
  SBX_ASSIGN(const spawn::RuntimeDirectory directory,
             spawn::RuntimeDirectory::open(config.runtime_dir));
  SBX_ASSIGN(const spawn::Record record, spawn::Record::create(directory, spawn::new_run_id()));
  constexpr cgroup::RunLimits kSmall{16 * policy::kMiB, 500, 8};
  SBX_ASSIGN(const std::unique_ptr<cgroup::CgroupRun> group,
             driver->create(directory.group_name(record.id()), kSmall));
  SBX_TRY(group->remove(std::chrono::milliseconds(1000)));
  return CgroupFacts{driver->detail(), driver->swap_controlled()};
}

}  // namespace

std::unique_ptr<Host> real_host() {
  return std::make_unique<RealHost>();
}

}  // namespace sbx::cli
