#include "runtime/cli/selftest_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/base/escape.h"

namespace sbx::cli {
namespace {

bool is_zero(std::string_view value) {
  return value == "0";
}
bool is_one(std::string_view value) {
  return value == "1";
}
bool is_two(std::string_view value) {
  return value == "2";
}
bool is_slash(std::string_view value) {
  return value == "/";
}
bool is_one_one(std::string_view value) {
  return value == "1/1";
}

// One line, "65534 <id in the outer namespace> 1": neither the host's ids nor a range.
bool is_nested_map(std::string_view value) {
  if (std::count(value.begin(), value.end(), '|') != 1) return false;
  std::string words;
  for (const char c : value) {
    if (c == '|') break;
    if (c != ' ' || (!words.empty() && words.back() != ' ')) words += c;
  }
  while (!words.empty() && words.back() == ' ') words.pop_back();
  const std::size_t last = words.rfind(' ');
  return words.rfind("65534 ", 0) == 0 && last != std::string::npos && words.substr(last) == " 1";
}

constexpr Expectation hostile(std::string_view syscall) {
  Expectation expected;
  expected.hostile_syscall = syscall;
  return expected;
}
constexpr Expectation refused(int first, int second = 0, int third = 0) {
  Expectation expected;
  expected.errnos = {first, second, third};
  return expected;
}
constexpr Expectation value(bool (*looks_right)(std::string_view), int or_errno = 0) {
  Expectation expected;
  expected.errnos = {or_errno};
  expected.looks_right = looks_right;
  return expected;
}

constexpr Control kAway = Control::kThrowAway;
constexpr Control kPlain = Control::kPlain;
constexpr Control kRoot = Control::kRoot;
constexpr std::string_view kCore = "/proc/sys/kernel/core_pattern";

// The table. name, layer, act, argument inside, argument of the control, expected, control, …
constexpr AttackCase kCases[] = {
    {"mount a tmpfs", "seccomp", "mount", "", "", hostile("mount"), kAway},
    {"new mount API", "seccomp", "fsopen", "", "", hostile("fsopen"), kAway},
    {"pivot_root", "seccomp", "pivot_root", "", "", hostile("pivot_root"), kAway},
    {"unshare a user namespace", "seccomp", "unshare_user", "", "", hostile("unshare"), kAway},
    {"clone a user namespace", "seccomp", "clone_namespace", "", "", hostile("clone"), kAway},
    {"setns", "seccomp", "setns", "", "", hostile("setns"), kPlain},
    {"clone3 answers ENOSYS", "seccomp", "clone3", "", "", refused(ENOSYS), kPlain, ENOSYS},
    {"ptrace", "seccomp", "ptrace", "", "", hostile("ptrace"), kPlain},
    {"process_vm_readv", "seccomp", "process_vm_readv", "", "", hostile("process_vm_readv"), kPlain,
     ENOSYS},
    {"keyctl", "seccomp", "keyctl", "", "", hostile("keyctl"), kPlain, ENOSYS},
    {"bpf", "seccomp", "bpf", "", "", hostile("bpf"), kPlain, ENOSYS},
    {"perf_event_open", "seccomp", "perf_event_open", "", "", hostile("perf_event_open"), kPlain,
     ENOSYS},
    {"userfaultfd", "seccomp", "userfaultfd", "", "", hostile("userfaultfd"), kPlain, ENOSYS},
    {"open_by_handle_at", "seccomp", "open_by_handle_at", "", "", hostile("open_by_handle_at"),
     kPlain, ENOSYS},
    {"io_uring", "seccomp", "io_uring", "", "", refused(ENOSYS), kPlain, ENOSYS},
    {"type into the terminal", "seccomp", "tiocsti", "", "", refused(ENOTTY, EPERM), kPlain},
    {"the same with high bits", "seccomp", "tiocsti", "high", "high", refused(ENOTTY, EPERM),
     kPlain},
    {"netlink socket", "seccomp", "netlink", "", "", refused(EAFNOSUPPORT, EPERM), kPlain},
    {"packet socket", "seccomp", "packet_socket", "", "", refused(EAFNOSUPPORT, EPERM), kAway,
     EAFNOSUPPORT},
    {"limits of pid 1", "uid_separation", "prlimit", "1", "0", refused(EPERM), kPlain},
    {"a filter is on", "seccomp", "seccomp", "", "", value(is_two), kPlain, 0, true},
    {"a host on the internet", "net_namespace", "connect", "192.0.2.1", "192.0.2.1",
     refused(ENETUNREACH), kAway},
    {"loopback services", "net_namespace", "connect", "127.0.0.1", "127.0.0.1",
     refused(ENETUNREACH), kAway},
    {"abstract sockets", "net_namespace", "abstract_socket", "@socket", "@socket",
     refused(ECONNREFUSED), kPlain},
    {"write to /etc", "rootfs", "write_file", "/etc/sbx-probe", "/etc/sbx-probe", refused(EROFS),
     kAway},
    {"files of the host", "rootfs", "open", "@canary", "@canary", refused(ENOENT), kPlain},
    {"/sys", "rootfs", "directory", "/sys", "/sys", refused(ENOENT), kPlain},
    {"devices of the host", "rootfs", "open", "/dev/kmsg", "/dev/kmsg", refused(ENOENT), kRoot,
     ENOENT},
    {"make a device", "capabilities", "mknod", "/tmp/sbx-probe-node", "@node", refused(EPERM),
     kRoot, EPERM},
    {"other processes in /proc", "proc", "processes", "", "", value(is_zero), kPlain},
    {"pid 1 in /proc", "proc", "open", "/proc/1/stat", "/proc/1/stat", refused(ENOENT), kPlain},
    {"core_pattern", "proc", "open_for_writing", kCore, kCore, refused(EROFS, EACCES, ENOENT),
     kRoot},
    {"no capability", "capabilities", "capabilities", "", "", value(is_zero), kAway},
    {"chroot", "capabilities", "chroot", "", "", refused(EPERM), kAway},
    {"sethostname", "capabilities", "sethostname", "", "", refused(EPERM), kAway},
    {"become root", "user_namespace", "setuid", "", "", refused(EINVAL, EPERM), kAway},
    {"no host id in uid_map", "user_namespace", "uid_map", "", "", value(is_nested_map), kPlain, 0,
     true},
    {"no_new_privs", "no_new_privs", "no_new_privs", "", "", value(is_one), kPlain, 0, true},
    {"descriptors above 2", "-", "descriptors", "", "", value(is_zero), kPlain},
    {"cgroup path", "cgroup_namespace", "cgroup", "", "", value(is_slash), kPlain, 0, true},
    {"core limit is 1", "rlimits", "core_limit_value", "", "", value(is_one_one), kPlain, 0, true},
    {"core limit to 0", "rlimits", "core_limit", "", "", refused(EPERM), kPlain},
};

}  // namespace

std::span<const AttackCase> attack_cases() {
  return kCases;
}

std::string_view case_state_name(CaseState state) {
  switch (state) {
    case CaseState::kPass:
      return "pass";
    case CaseState::kFail:
      return "FAIL";
    case CaseState::kNotApplicable:
      return "n.a.";
    case CaseState::kControlFailed:
      break;
  }
  return "control failed";
}

Observation observe(const collect::Outcome& outcome) {
  Observation seen;
  for (const collect::Denial& denial : outcome.denials) {
    if (denial.tier != "hostile") seen.denied.push_back(denial.syscall);
  }
  if (outcome.status == collect::Status::kSecurity) {
    for (const collect::Denial& denial : outcome.denials) {
      if (denial.tier == "hostile") seen.hostile_syscall = denial.syscall;
    }
    return seen;
  }
  if (outcome.ok()) {
    std::vector<std::string> denied = std::move(seen.denied);
    seen = parse_probe_line(outcome.stdout_bytes);
    seen.denied = std::move(denied);
    return seen;
  }
  seen.trouble = fmt::format("status {}", collect::status_name(outcome.status));
  if (outcome.error) seen.trouble += ": " + outcome.error->detail;
  return seen;
}

Observation parse_probe_line(std::string_view line) {
  Observation seen;
  const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
  const bool whole = parsed.is_object() && parsed.contains("errno") && parsed.contains("value") &&
                     parsed["errno"].is_number_integer() && parsed["value"].is_string();
  if (!whole) {
    seen.trouble = line.empty() ? "the probe said nothing" : std::string(line.substr(0, 200));
    return seen;
  }
  seen.answered = true;
  seen.sys_errno = parsed["errno"].get<int>();
  seen.value = parsed["value"].get<std::string>();
  return seen;
}

bool matches(const Expectation& expected, const Observation& seen) {
  if (!expected.hostile_syscall.empty()) return seen.hostile_syscall == expected.hostile_syscall;
  if (!seen.answered) return false;
  if (seen.sys_errno == 0)
    return expected.looks_right != nullptr && expected.looks_right(seen.value);
  return std::find(expected.errnos.begin(), expected.errnos.end(), seen.sys_errno) !=
         expected.errnos.end();
}

CaseState judge(const AttackCase& attack, const Observation& inside,
                const std::optional<Observation>& control) {
  if (!matches(attack.expected, inside)) return CaseState::kFail;
  if (!control) return CaseState::kNotApplicable;
  if (!control->answered) return CaseState::kControlFailed;
  const bool absent = attack.absent_errno != 0 && control->sys_errno == attack.absent_errno;
  if (absent) return CaseState::kNotApplicable;
  if (!matches(attack.expected, *control)) return CaseState::kPass;
  return attack.host_may_match ? CaseState::kNotApplicable : CaseState::kControlFailed;
}

std::string describe(const Observation& seen) {
  if (!seen.hostile_syscall.empty()) return "ended for " + seen.hostile_syscall;
  if (!seen.answered) return seen.trouble;
  if (seen.sys_errno != 0) {
    const char* const name = ::strerrorname_np(seen.sys_errno);
    return name == nullptr ? fmt::format("errno {}", seen.sys_errno) : std::string(name);
  }
  if (seen.value.empty()) return "succeeded";
  std::string text;
  for (const char c : seen.value) {
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  }
  return escape_for_terminal(text);
}

}  // namespace sbx::cli
