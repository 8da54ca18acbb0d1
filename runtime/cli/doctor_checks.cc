#include "runtime/cli/doctor_checks.h"

#include <fmt/core.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "runtime/base/own_limits.h"
#include "runtime/cli/doctor_ids.h"
#include "runtime/cli/doctor_image.h"
#include "runtime/cli/doctor_lines.h"

namespace sbx::cli {
namespace {

constexpr int kMinKernelMajor = 5;
constexpr int kMinKernelMinor = 19;  // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

Check ok(std::string name, bool required, std::string detail) {
  return {std::move(name), required, CheckState::kOk, std::move(detail), {}};
}

std::string why(const Act& act) {
  return fmt::format("{}: {}", act.failed_step, std::strerror(act.sys_errno));
}

// An act that failed: `check` unless it failed for want of what every act takes.
Check unless_untried(const Act& act, Check check) {
  std::string fix = scarcity_fix(act.sys_errno);
  if (fix.empty()) return check;
  return {std::move(check.name), check.required, CheckState::kUntried, why(act), std::move(fix)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

// True when the file can be read and says exactly `value`.
bool says(Host& host, const std::string& path, std::string_view value) {
  const Result<std::string> text = host.read_file(path);
  return text && trimmed(*text) == value;
}

Check check_kernel(Host& host) {
  const std::string release = host.kernel_release();
  int major = 0;
  int minor = 0;
  const char* const end = release.data() + release.size();
  const auto [after, failed] = std::from_chars(release.data(), end, major);
  if (failed == std::errc() && after != end) (void)std::from_chars(after + 1, end, minor);
  if (major > kMinKernelMajor || (major == kMinKernelMajor && minor >= kMinKernelMinor)) {
    return ok("kernel", true, release);
  }
  return {"kernel", true, CheckState::kMissing,
          fmt::format("{} is older than {}.{}", release, kMinKernelMajor, kMinKernelMinor),
          "use a newer kernel (Debian 12 has 6.1)"};
}

// The sysctl that forbids it, where one is known to.
std::string namespace_fix(Host& host, const Act& act) {
  if (act.sys_errno == ENOSPC) {
    for (const char* const kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
      const std::string name = fmt::format("max_{}_namespaces", kind);
      if (says(host, "/proc/sys/user/" + name, "0")) {
        return "sudo sysctl -w user." + name + "=15000";
      }
    }
  }
  if (says(host, "/proc/sys/kernel/unprivileged_userns_clone", "0")) {
    return "sudo sysctl -w kernel.unprivileged_userns_clone=1";
  }
  if (says(host, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")) {
    return "install the AppArmor profile of the package, or: sudo sysctl -w "
           "kernel.apparmor_restrict_unprivileged_userns=0";
  }
  return "in a container or a systemd unit: allow user namespaces (RestrictNamespaces=no, no "
         "seccomp filter on unshare)";
}

Check check_namespaces(Host& host) {
  const Act act = host.make_namespaces();
  if (act.ok()) return ok("namespaces", true, "user (nested), mount, pid, net, ipc, uts, cgroup");
  return unless_untried(
      act, {"namespaces", true, CheckState::kMissing, why(act), namespace_fix(host, act)});
}

// What is mounted over parts of the caller's /proc, which is what forbids a new one.
std::string mounts_over_proc(Host& host) {
  const Result<std::string> mounts = host.read_file("/proc/self/mountinfo");
  std::string found;
  if (!mounts) return found;
  for (const std::string_view line : split(*mounts, '\n')) {
    const std::vector<std::string_view> fields = split(line, ' ');
    if (fields.size() < 5 || fields[4].substr(0, 6) != "/proc/") continue;
    if (fields[4] == "/proc/sys/fs/binfmt_misc") continue;  // an ordinary host has it
    found += (found.empty() ? "" : ", ") + std::string(fields[4]);
  }
  return found;
}

Check check_proc(Host& host) {
  const Act act = host.mount_proc();
  if (act.ok()) return ok("proc", true, "a new proc can be mounted");
  const std::string over = mounts_over_proc(host);
  if (over.empty()) {
    return unless_untried(act,
                          {"proc", true, CheckState::kMissing, why(act), namespace_fix(host, act)});
  }
  return unless_untried(
      act, {"proc", true, CheckState::kMissing, why(act) + "; mounted over /proc: " + over,
            "let the container or unit see all of /proc (ProtectKernelTunables=no, "
            "--security-opt systempaths=unconfined)"});
}

// Ids that a plan counts on and nobody can map: every run fails.
Check unmappable_ids(const Act& act, std::string fix) {
  return unless_untried(act,
                        {"subordinate_ids", true, CheckState::kMissing, why(act), std::move(fix)});
}

Check check_ids_of_root(Host& host, const policy::RuntimeConfig& config) {
  constexpr std::uint32_t kRootRange = 65536;
  const IdRange range{config.uid_base, kRootRange};
  const Act act = host.map_ids(range, range);
  if (act.ok()) return ok("subordinate_ids", false, fmt::format("range {}", config.uid_base));
  return unmappable_ids(act, "give this container or unit the ids of uid_base (--print-config)");
}

// Where usermod looks for the caller.
bool is_in_passwd(const std::string& users, uid_t uid) {
  const std::string number = std::to_string(uid);
  for (const std::string_view line : split(users, '\n')) {
    const std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() > 2 && fields[2] == number) return true;
  }
  return false;
}

Result<IdFiles> id_files(Host& host) {
  const auto read = [&host](const char* path) -> Result<std::string> {
    Result<std::string> text = host.read_file(path);
    if (!text && text.error().sys_errno == ENOENT) return std::string();
    return text;
  };
  IdFiles files;
  SBX_ASSIGN(files.subuid, read("/etc/subuid"));
  SBX_ASSIGN(files.subgid, read("/etc/subgid"));
  SBX_ASSIGN(files.passwd, read("/etc/passwd"));
  SBX_ASSIGN(files.group, read("/etc/group"));
  SBX_ASSIGN(files.login_defs, read("/etc/login.defs"));
  return files;
}

// SECURITY: ids that nobody has, neither here nor as root's runs; who has another's can be him.
std::optional<std::uint32_t> free_ids(const IdFiles& files, Host& host,
                                      const policy::RuntimeConfig& config) {
  // Those of root's own runs, and behind them those of a service that root starts.
  const IdRange of_root{config.uid_base, 2 * kSubordinateCount};
  return free_subordinate_ids(files, {of_root, IdRange{host.uid(), 1}});
}

// The command that gives the caller subordinate ids. newuidmap wants him to have a name, and the
// group that goes with it.
std::string subordinate_ids_fix(Host& host, const policy::RuntimeConfig& config,
                                const plan::HostFacts& facts) {
  const Result<IdFiles> files = id_files(host);
  if (!files) return "let the caller read it: " + to_string(files.error());
  const std::optional<std::uint32_t> first = free_ids(*files, host, config);
  if (!first) {
    return fmt::format(
        "no {} ids in a row are free: remove lines that nobody needs from /etc/subuid and "
        "/etc/subgid, or raise SUB_UID_MAX and SUB_GID_MAX in /etc/login.defs",
        kSubordinateCount);
  }
  const std::string give = fmt::format("usermod --add-subuids {0}-{1} --add-subgids {0}-{1}",
                                       *first, *first + kSubordinateCount - 1);
  if (is_in_passwd(files->passwd, host.uid())) return fmt::format("sudo {} $(id -un)", give);
  const Result<bool> has_name = host.has_login_name();
  if (!has_name) return has_name.error().fix;
  if (*has_name) {  // of a directory service: usermod does not know him
    return fmt::format("echo {}:{}:{} | sudo tee -a /etc/subuid /etc/subgid", host.uid(), *first,
                       kSubordinateCount);
  }
  return fmt::format(
      "sudo sh -c 'groupadd --gid {1} sbx-{0}; useradd --uid {0} --gid {1} --no-create-home "
      "sbx-{0} && {2} sbx-{0}'",
      host.uid(), facts.host_gid, give);
}

// What an ordinary user has to change for the plan to find ids of his.
std::string id_fix(Host& host, const policy::RuntimeConfig& config, const plan::HostFacts& facts) {
  if (facts.id_detail.find("no_new_privs") != std::string::npos) {
    return "start it without no_new_privs (NoNewPrivileges=no, no --security-opt "
           "no-new-privileges)";
  }
  if (!host.has_program("newuidmap") || !host.has_program("newgidmap")) {
    return "sudo apt-get install uidmap";
  }
  return subordinate_ids_fix(host, config, facts);
}

Check check_ids(Host& host, const policy::RuntimeConfig& config) {
  if (host.uid() == 0) return check_ids_of_root(host, config);
  const plan::HostFacts facts = host.facts(config);
  if (facts.ids != plan::IdMode::kSubordinate) {
    return {"subordinate_ids", false, CheckState::kDegraded,
            facts.id_detail + "; the program and init share one id", id_fix(host, config, facts)};
  }
  const std::uint32_t count = facts.id_count - 1;  // without his own
  const Act act = host.map_ids({facts.sub_uid, count}, {facts.sub_gid, count});
  if (act.ok()) return ok("subordinate_ids", false, fmt::format("{} of them", count));
  return unmappable_ids(act,
                        "make newuidmap and newgidmap setuid root again, or remove the "
                        "caller's lines from /etc/subuid and /etc/subgid");
}

// What a run takes from the limits of whoever starts it, at what is given when nothing is asked
// for.
Check check_limits(Host& host, const policy::RuntimeConfig& config) {
  const plan::HostFacts facts = host.facts(config);
  const policy::Limits usual;
  if (facts.hard_core == 0 && facts.core_is_piped) {
    return {"rlimits", true, CheckState::kMissing,
            "the hard core limit is 0, and cores go through a pipe, which only 1 stops",
            plan::kCoreFix};
  }
  const auto lowered = [](std::string detail, std::string fix) {
    return Check{"rlimits", false, CheckState::kDegraded, std::move(detail), std::move(fix)};
  };
  if (facts.hard_nofile < usual.nofile) {
    return lowered(
        fmt::format("the hard limit on open files is {}, to which a run's nofile of {} is lowered",
                    facts.hard_nofile, usual.nofile),
        fmt::format("ulimit -n {} where it is started from, or LimitNOFILE= in its unit",
                    usual.nofile));
  }
  if (facts.hard_fsize < usual.fsize) {
    return lowered(
        fmt::format(
            "the hard limit on a file's size is {}, to which a run's fsize of {} is lowered",
            policy::size_text(facts.hard_fsize), policy::size_text(usual.fsize)),
        fmt::format("ulimit -f {} where it is started from, or LimitFSIZE= in its unit",
                    usual.fsize / policy::kKiB));
  }
  return ok("rlimits", true,
            facts.hard_core == 0 ? "core 0, which is enough: cores go to files" : "core 1");
}

Check check_cgroup(Host& host, const policy::RuntimeConfig& config, bool can_record) {
  if (!can_record) {
    return {"cgroup", true, CheckState::kUntried, "a group is made with a record of it",
            "mend the runtime directory first"};
  }
  const Result<CgroupFacts> facts = host.make_cgroup(config);
  if (!facts) {
    const std::string& fix = facts.error().fix;
    return {"cgroup", true, CheckState::kMissing, to_string(facts.error()),
            fix.empty() ? "let the caller make and write groups below cgroup_parent "
                          "(--print-config), or name another there"
                        : fix};
  }
  if (facts->swap_controlled) return ok("cgroup", true, facts->detail);
  return {"cgroup", true, CheckState::kDegraded,
          facts->detail + "; swap is not limited, and the host has some",
          "boot with swapaccount=1, or: sudo swapoff -a"};
}

// Where records and id locks go: without it no run begins, since nothing could be found again.
Check check_runtime_directory(Host& host, const policy::RuntimeConfig& config) {
  const Result<std::string> path = host.runtime_directory(config);
  if (path) return ok("runtime_directory", true, *path);
  return {"runtime_directory", true, CheckState::kMissing, to_string(path.error()),
          path.error().fix};
}

Check check_seccomp(Host& host) {
  const auto missing = [](std::string detail) {
    return Check{"seccomp", true, CheckState::kMissing, std::move(detail),
                 "use a kernel of 5.19 or newer with CONFIG_SECCOMP_FILTER"};
  };
  if (const int failed = host.seccomp_action(SECCOMP_RET_USER_NOTIF); failed != 0) {
    return missing(std::string("no user notification: ") + std::strerror(failed));
  }
  // With a null program a known flag gets as far as EFAULT, an unknown one is EINVAL.
  constexpr unsigned kFlags =
      SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  if (const int failed = host.seccomp(SECCOMP_SET_MODE_FILTER, kFlags); failed != EFAULT) {
    return missing(std::string("no WAIT_KILLABLE_RECV: ") + std::strerror(failed));
  }
  return ok("seccomp", true, "user notification, killable waits");
}

Check check_memfd(Host& host) {
  const Act act = host.exec_memfd();
  if (act.ok()) return ok("memfd_exec", true, "a sealed memfd can be executed");
  const bool forbidden = says(host, "/proc/sys/vm/memfd_noexec", "2");
  return unless_untried(
      act,
      {"memfd_exec", true, CheckState::kMissing, why(act),
       forbidden ? "sudo sysctl -w vm.memfd_noexec=1"
                 : "allow this process to execute a memfd (an LSM or a seccomp filter forbids)"});
}

Check check_landlock(Host& host) {
  constexpr int kLeastAbi = 2;  // the first that lets a program rename between directories
  const int abi = host.landlock_abi();
  if (abi >= kLeastAbi) return ok("landlock", false, fmt::format("ABI {}", abi));
  if (abi >= 0) {
    return {"landlock", false, CheckState::kMissing,
            fmt::format("ABI {}, and {} is needed", abi, kLeastAbi),
            "use a kernel of 5.19 or newer"};
  }
  return {"landlock", false, CheckState::kMissing, std::strerror(-abi),
          "boot with landlock in the lsm= list (CONFIG_SECURITY_LANDLOCK)"};
}

Check check_time_namespace(Host& host, const policy::RuntimeConfig& config) {
  // A plan leaves it out on kernels that would refuse to clone the program then.
  if ((host.facts(config).missing & policy::layer_bit(policy::Layer::kTimeNamespace)) != 0) {
    return {"time_namespace", false, CheckState::kMissing,
            host.kernel_release() + ": used from Linux 6.3 on", "use a kernel of 6.3 or newer"};
  }
  const Act act = host.make_time_namespace();
  if (act.ok()) return ok("time_namespace", false, "available");
  if (act.sys_errno == EPERM || act.failed_step != "unshare time") {
    return unless_untried(
        act, {"time_namespace", false, CheckState::kMissing, why(act),
              "start it as root of the host with all capabilities, or as an ordinary user"});
  }
  const bool none_allowed = says(host, "/proc/sys/user/max_time_namespaces", "0");
  return unless_untried(act, {"time_namespace", false, CheckState::kMissing, why(act),
                              none_allowed ? "sudo sysctl -w user.max_time_namespaces=15000"
                                           : "use a kernel with CONFIG_TIME_NS"});
}

}  // namespace

std::string_view check_state_name(CheckState state) {
  switch (state) {
    case CheckState::kOk:
      return "ok";
    case CheckState::kDegraded:
      return "degraded";
    case CheckState::kUntried:
      return "untried";
    case CheckState::kMissing:
      break;
  }
  return "missing";
}

std::vector<Check> host_checks(Host& host, const policy::RuntimeConfig& config) {
  // Without these no other means what it says.
  if (const Result<void> own = host.own_proc(); !own) {
    return {check_kernel(host),
            {"proc", true, CheckState::kMissing, own.error().detail, own.error().fix}};
  }
  if (const Result<void> own = host.own_devices(); !own) {
    return {check_kernel(host),
            {"devices", true, CheckState::kMissing, to_string(own.error()), own.error().fix}};
  }
  const Check runtime = check_runtime_directory(host, config);
  return {check_kernel(host),
          check_namespaces(host),
          check_proc(host),
          check_ids(host, config),
          check_limits(host, config),
          runtime,
          check_cgroup(host, config, runtime.state == CheckState::kOk),
          check_seccomp(host),
          check_memfd(host),
          check_landlock(host),
          check_time_namespace(host, config)};
}

std::vector<Check> run_checks(Host& host, const DoctorOptions& options) {
  std::vector<Check> checks = host_checks(host, options.config);
  checks.push_back(check_image(host, options));
  checks.push_back(check_run(host, options, all_required_hold(checks)));
  return checks;
}

bool all_required_hold(const std::vector<Check>& checks) {
  return std::all_of(checks.begin(), checks.end(), [](const Check& check) {
    return !check.required || check.state == CheckState::kOk;
  });
}

bool runs_are_refused(const std::vector<Check>& checks) {
  return std::any_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.required &&
           (check.state == CheckState::kMissing || check.state == CheckState::kDegraded);
  });
}

}  // namespace sbx::cli
