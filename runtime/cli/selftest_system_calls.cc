// Attacks by system call. A table: class, name, layer, act, argument inside, argument of the
// control, expected, control, errno of a host without the facility, whether the caller may be
// confined alike.
#include "runtime/cli/selftest_tables.h"

namespace sbx::cli {
namespace {

constexpr std::string_view kSeccomp = "seccomp";

// uid 65534 is the payload's own; everything else is none.
bool has_no_power(std::string_view value) {
  return value == "uid 65534 capabilities 0 no_new_privs 1 seccomp 2";
}

constexpr AttackCase kCases[] = {
    // New namespaces bring capabilities over them.
    {kCalls, "unshare a user namespace", kSeccomp, "unshare_user", "", "", hostile("unshare"),
     kAway},
    {kCalls, "unshare a mount namespace", kSeccomp, "unshare_mount", "", "", hostile("unshare"),
     kAway},
    {kCalls, "unshare a net namespace", kSeccomp, "unshare_net", "", "", hostile("unshare"), kAway},
    {kCalls, "unshare a time namespace", kSeccomp, "unshare_time", "", "", hostile("unshare"),
     kAway},
    {kCalls, "clone a user namespace", kSeccomp, "clone_namespace", "user", "user",
     hostile("clone"), kAway},
    {kCalls, "clone a user namespace, high bits", kSeccomp, "clone_namespace", "user high",
     "user high", hostile("clone"), kAway},
    {kCalls, "clone a mount namespace", kSeccomp, "clone_namespace", "mount", "mount",
     hostile("clone"), kAway},
    {kCalls, "clone a net namespace", kSeccomp, "clone_namespace", "net", "net", hostile("clone"),
     kAway},
    {kCalls, "clone a pid namespace", kSeccomp, "clone_namespace", "pid", "pid", hostile("clone"),
     kAway},
    {kCalls, "clone an ipc namespace", kSeccomp, "clone_namespace", "ipc", "ipc", hostile("clone"),
     kAway},
    {kCalls, "clone a uts namespace", kSeccomp, "clone_namespace", "uts", "uts", hostile("clone"),
     kAway},
    {kCalls, "clone a cgroup namespace", kSeccomp, "clone_namespace", "cgroup", "cgroup",
     hostile("clone"), kAway},
    {kCalls, "setns", kSeccomp, "setns", "", "", hostile("setns"), kAway},
    {kCalls, "clone3 answers ENOSYS", kSeccomp, "clone3", "", "", refused(ENOSYS), kPlain, ENOSYS},
    // Both mount interfaces.
    {kCalls, "mount a tmpfs", kSeccomp, "mount", "", "", hostile("mount"), kAway},
    {kCalls, "umount2", kSeccomp, "umount2", "", "", hostile("umount2"), kAway},
    {kCalls, "pivot_root", kSeccomp, "pivot_root", "", "", hostile("pivot_root"), kAway},
    {kCalls, "open_tree", kSeccomp, "open_tree", "", "", hostile("open_tree"), kAway},
    {kCalls, "move_mount", kSeccomp, "move_mount", "", "", hostile("move_mount"), kAway},
    {kCalls, "fsopen", kSeccomp, "fsopen", "", "", hostile("fsopen"), kAway},
    {kCalls, "fsconfig", kSeccomp, "fsconfig", "", "", hostile("fsconfig"), kAway},
    {kCalls, "fsmount", kSeccomp, "fsmount", "", "", hostile("fsmount"), kAway},
    {kCalls, "fspick", kSeccomp, "fspick", "", "", hostile("fspick"), kAway},
    {kCalls, "mount_setattr", kSeccomp, "mount_setattr", "", "", hostile("mount_setattr"), kAway},
    // Work that the kernel would do past the filter.
    {kCalls, "io_uring_setup", kSeccomp, "io_uring_setup", "", "",
     counted("io_uring_setup", ENOSYS), kPlain, ENOSYS},
    {kCalls, "io_uring_enter", kSeccomp, "io_uring_enter", "", "",
     counted("io_uring_enter", ENOSYS), kPlain, ENOSYS},
    {kCalls, "io_uring_register", kSeccomp, "io_uring_register", "", "",
     counted("io_uring_register", ENOSYS), kPlain, ENOSYS},
    // Other processes: inside pid 1, which is init; outside nobody, or the process itself.
    {kCalls, "ptrace init", kSeccomp, "ptrace", "init", "", hostile("ptrace"), kPlain},
    {kCalls, "read init's memory", kSeccomp, "process_vm_readv", "init", "",
     hostile("process_vm_readv"), kPlain, ENOSYS},
    {kCalls, "write init's memory", kSeccomp, "process_vm_writev", "init", "",
     hostile("process_vm_writev"), kPlain, ENOSYS},
    {kCalls, "take a descriptor", kSeccomp, "pidfd_getfd", "", "", hostile("pidfd_getfd"), kPlain},
    {kCalls, "advise init's memory", kSeccomp, "process_madvise", "init", "",
     counted("process_madvise", EPERM), kPlain, ENOSYS},
    {kCalls, "kcmp of init", kSeccomp, "kcmp", "init", "", counted("kcmp", EPERM), kPlain, ENOSYS},
    {kCalls, "init's memory in /proc", "proc", "open", "/proc/1/mem", "/proc/self/mem",
     refused(ENOENT), kPlain},
    // Allowed, and giving no power.
    {kCalls, "execute a memfd", "-", "memfd_exec", "", "", value(has_no_power), kPlain},
    {kCalls, "execute /proc/self/fd/N", "-", "fd_exec", "", "", value(has_no_power), kPlain},
    // Keyrings are of no namespace.
    {kCalls, "keyctl", kSeccomp, "keyctl", "", "", hostile("keyctl"), kPlain, ENOSYS},
    {kCalls, "add_key", kSeccomp, "add_key", "", "", hostile("add_key"), kPlain, ENOSYS},
    {kCalls, "request_key", kSeccomp, "request_key", "", "", hostile("request_key"), kPlain,
     ENOSYS},
    // Programs, counters and modules inside the kernel.
    {kCalls, "bpf", kSeccomp, "bpf", "", "", hostile("bpf"), kPlain, ENOSYS},
    {kCalls, "perf_event_open", kSeccomp, "perf_event_open", "", "", hostile("perf_event_open"),
     kPlain, ENOSYS},
    {kCalls, "userfaultfd", kSeccomp, "userfaultfd", "", "", hostile("userfaultfd"), kPlain,
     ENOSYS},
    {kCalls, "kexec_load", kSeccomp, "kexec_load", "", "", hostile("kexec_load"), kPlain, ENOSYS},
    {kCalls, "kexec_file_load", kSeccomp, "kexec_file_load", "", "", hostile("kexec_file_load"),
     kPlain, ENOSYS},
    {kCalls, "init_module", kSeccomp, "init_module", "", "", hostile("init_module"), kPlain,
     ENOSYS},
    {kCalls, "finit_module", kSeccomp, "finit_module", "", "", hostile("finit_module"), kPlain,
     ENOSYS},
    {kCalls, "delete_module", kSeccomp, "delete_module", "", "", hostile("delete_module"), kPlain,
     ENOSYS},
    {kCalls, "open_by_handle_at", kSeccomp, "open_by_handle_at", "", "",
     hostile("open_by_handle_at"), kPlain, ENOSYS},
    // The host's administration.
    {kCalls, "quotactl", kSeccomp, "quotactl", "", "", hostile("quotactl"), kPlain, ENOSYS},
    {kCalls, "quotactl_fd", kSeccomp, "quotactl_fd", "", "", hostile("quotactl_fd"), kPlain,
     ENOSYS},
    {kCalls, "swapon", kSeccomp, "swapon", "", "", hostile("swapon"), kPlain, ENOSYS},
    {kCalls, "swapoff", kSeccomp, "swapoff", "", "", hostile("swapoff"), kPlain, ENOSYS},
    {kCalls, "reboot", kSeccomp, "reboot", "", "", hostile("reboot"), kPlain},
    {kCalls, "acct", kSeccomp, "acct", "", "", hostile("acct"), kPlain, ENOSYS},
    {kCalls, "syslog", kSeccomp, "syslog", "", "", counted("syslog", EPERM), kRoot, ENOSYS},
    {kCalls, "fanotify_init", kSeccomp, "fanotify_init", "", "", counted("fanotify_init", EPERM),
     kPlain, ENOSYS},
    {kCalls, "settimeofday", kSeccomp, "settimeofday", "now", "", hostile("settimeofday"), kPlain},
    {kCalls, "clock_settime", kSeccomp, "clock_settime", "now", "", hostile("clock_settime"),
     kPlain},
    {kCalls, "adjtimex", kSeccomp, "adjtimex", "now", "", hostile("adjtimex"), kPlain},
    {kCalls, "clock_adjtime", kSeccomp, "clock_adjtime", "now", "", hostile("clock_adjtime"),
     kPlain},
    {kCalls, "sethostname", kSeccomp, "sethostname", "", "", counted("sethostname", EPERM), kAway},
    {kCalls, "setdomainname", kSeccomp, "setdomainname", "", "", counted("setdomainname", EPERM),
     kAway},
    {kCalls, "chroot", kSeccomp, "chroot", "", "", counted("chroot", EPERM), kAway},
    {kCalls, "iopl", kSeccomp, "iopl", "", "", hostile("iopl"), kPlain, ENOSYS},
    {kCalls, "ioperm", kSeccomp, "ioperm", "", "", hostile("ioperm"), kPlain, ENOSYS},
    {kCalls, "make a device", kSeccomp, "mknod", "/tmp/sbx-probe-node", "@node",
     counted("mknodat", EPERM), kRoot, EPERM},
    {kCalls, "make a device, high bits", kSeccomp, "mknod", "high/tmp/sbx-probe-node", "high@node",
     counted("mknodat", EPERM), kRoot, EPERM},
    // What a process may make of itself.
    {kCalls, "personality", kSeccomp, "personality", "", "", counted("personality", EPERM), kPlain},
    {kCalls, "personality, high bits", kSeccomp, "personality", "high", "high",
     counted("personality", EPERM), kPlain},
    {kCalls, "modify_ldt", kSeccomp, "modify_ldt", "", "", counted("modify_ldt", EPERM), kPlain,
     ENOSYS},
    {kCalls, "prctl PR_SET_MM", kSeccomp, "prctl_set_mm", "", "", counted("prctl", EINVAL), kPlain,
     EINVAL},
    {kCalls, "prctl PR_SET_MM, high bits", kSeccomp, "prctl_set_mm", "high", "high",
     counted("prctl", EINVAL), kPlain, EINVAL},
    {kCalls, "prctl PR_SET_KEEPCAPS", kSeccomp, "prctl_keepcaps", "", "", counted("prctl", EINVAL),
     kPlain},
    {kCalls, "prctl PR_MCE_KILL", kSeccomp, "prctl_mce_kill", "", "", counted("prctl", EINVAL),
     kPlain, EINVAL},
    // Foreign ABIs have numbers of their own.
    {kCalls, "int 0x80", kSeccomp, "int80", "", "", hostile("i386:getpid"), kPlain, ENOSYS},
    {kCalls, "x32", kSeccomp, "x32", "", "", hostile("x32:getpid"), kPlain, ENOSYS},
    // Sockets that are more than a pipe with an address.
    {kCalls, "netlink socket", kSeccomp, "socket_netlink", "", "", counted("socket", EAFNOSUPPORT),
     kPlain},
    {kCalls, "netlink socket, high bits", kSeccomp, "socket_netlink", "high", "high",
     counted("socket", EAFNOSUPPORT), kPlain},
    {kCalls, "packet socket", kSeccomp, "socket_packet", "", "", counted("socket", EAFNOSUPPORT),
     kAway, EAFNOSUPPORT},
    {kCalls, "vsock socket", kSeccomp, "socket_vsock", "", "", counted("socket", EAFNOSUPPORT),
     kPlain, EAFNOSUPPORT},
    {kCalls, "alg socket", kSeccomp, "socket_alg", "", "", counted("socket", EAFNOSUPPORT), kPlain,
     EAFNOSUPPORT},
    {kCalls, "key socket", kSeccomp, "socket_key", "", "", counted("socket", EAFNOSUPPORT), kPlain,
     EAFNOSUPPORT},
    {kCalls, "raw socket", kSeccomp, "socket_raw", "", "", counted("socket", EAFNOSUPPORT), kAway},
    {kCalls, "raw IPv6 socket", kSeccomp, "socket_raw6", "", "", counted("socket", EAFNOSUPPORT),
     kAway, EAFNOSUPPORT},
    // Limits and scheduling of init.
    {kCalls, "limits of pid 1", kSeccomp, "prlimit", "init", "", counted("prlimit64", EPERM),
     kPlain},
    {kCalls, "limits of pid 1, high bits", kSeccomp, "prlimit", "init high", "high",
     counted("prlimit64", EPERM), kPlain},
    {kCalls, "affinity of pid 1", kSeccomp, "sched_setaffinity", "init", "",
     counted("sched_setaffinity", EPERM), kPlain},
    {kCalls, "scheduler of pid 1", kSeccomp, "sched_setscheduler", "init", "",
     counted("sched_setscheduler", EPERM), kPlain},
    {kCalls, "parameters of pid 1", kSeccomp, "sched_setparam", "init", "",
     counted("sched_setparam", EPERM), kPlain},
    {kCalls, "attributes of pid 1", kSeccomp, "sched_setattr", "init", "",
     counted("sched_setattr", EPERM), kPlain},
    {kCalls, "priority of pid 1", kSeccomp, "setpriority", "init", "",
     counted("setpriority", EPERM), kPlain},
    {kCalls, "priority of pid 1, high bits", kSeccomp, "setpriority", "init high", "high",
     counted("setpriority", EPERM), kPlain},
    {kCalls, "io priority of pid 1", kSeccomp, "ioprio_set", "init", "",
     counted("ioprio_set", EPERM), kPlain},
    // A call that is younger than the policy: this kernel has it or not.
    {kCalls, "call of the future", kSeccomp, "future_call", "", "", counted("syscall_462", ENOSYS),
     kPlain, ENOSYS},
    {kCalls, "a filter is on", kSeccomp, "seccomp", "", "",
     value([](std::string_view mode) { return mode == "2"; }), kPlain, 0, true},
};

}  // namespace

std::span<const AttackCase> system_call_cases() {
  return kCases;
}

}  // namespace sbx::cli
