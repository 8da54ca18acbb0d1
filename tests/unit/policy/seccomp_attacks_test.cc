// The attacks on the filter, by name: what each call comes to under the default profile.
#include <fcntl.h>
#include <linux/audit.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <initializer_list>

#include "runtime/policy/policy.h"
#include "tests/unit/policy/filter_under_test.h"

namespace sbx::policy {
namespace {

using Arguments = std::initializer_list<std::uint64_t>;

using test::Call;
using test::denied;
using test::Filter;
using test::kAllowed;
using test::kCounted;
using test::kHighBits;
using test::kHostile;
using test::Outcome;
using test::outcome_of;
using test::quiet;

// -----------------------------------------------------------------------------

TEST(RecordLocks, AreCountedUnlessAProfileDecides) {
  const Filter filter;
  const Filter deny = Filter::with("deny = { fcntl = \"EACCES\" }");
  const Filter hostile = Filter::with("hostile = [\"fcntl\"]");
  const Filter allow = Filter::with("allow = [\"fcntl\"]");
  for (const std::uint64_t high : {std::uint64_t{0}, kHighBits}) {
    for (const int command : {F_SETLK, F_SETLKW}) {
      const std::array<std::uint64_t, 6> args = {3, high | static_cast<std::uint64_t>(command)};
      EXPECT_EQ(filter.ask("fcntl", args), kCounted) << command;
      EXPECT_EQ(deny.ask("fcntl", args), denied(EACCES)) << command;
      EXPECT_EQ(hostile.ask("fcntl", args), kHostile) << command;
      EXPECT_EQ(allow.ask("fcntl", args), kAllowed) << command;
    }
    EXPECT_EQ(filter.ask("fcntl", {3, high | F_GETLK}), kAllowed);
    EXPECT_EQ(filter.ask("fcntl", {3, high | F_NOTIFY}), denied(EINVAL));
    for (const int command : {F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW}) {
      EXPECT_EQ(filter.ask("fcntl", {3, high | static_cast<std::uint64_t>(command)}),
                denied(EINVAL))
          << "of no process, so not to be counted";
    }
  }
}

TEST(Flocks, AreCountedAndLetGoOfByTheKernel) {
  const Filter filter;
  const Filter deny = Filter::with("deny = { flock = \"EACCES\" }");
  const Filter allow = Filter::with("allow = [\"flock\"]");
  for (const std::uint64_t high : {std::uint64_t{0}, kHighBits}) {
    for (const int operation : {LOCK_SH, LOCK_EX, LOCK_SH | LOCK_NB, LOCK_EX | LOCK_NB}) {
      const std::array<std::uint64_t, 6> args = {3, high | static_cast<std::uint64_t>(operation)};
      EXPECT_EQ(filter.ask("flock", args), kCounted) << operation;
      EXPECT_EQ(deny.ask("flock", args), denied(EACCES)) << operation;
      EXPECT_EQ(allow.ask("flock", args), kAllowed) << operation;
    }
    EXPECT_EQ(filter.ask("flock", {3, high | LOCK_UN}), kAllowed);
    EXPECT_EQ(filter.ask("flock", {3, high | LOCK_UN | LOCK_NB}), kAllowed);
    for (const std::uint64_t odd : Arguments{0, LOCK_NB, LOCK_SH | LOCK_EX, LOCK_SH | LOCK_UN, 32,
                                             32 | 64, 32 | LOCK_SH, 0x80000001}) {
      EXPECT_EQ(filter.ask("flock", {3, high | odd}), denied(EINVAL)) << odd;
    }
  }
}

TEST(DefaultFilter, AllowsWhatEveryProgramNeeds) {
  const Filter filter;
  for (const char* name : {"read",
                           "write",
                           "openat",
                           "mmap",
                           "execve",
                           "exit_group",
                           "futex",
                           "rseq",
                           "set_robust_list",
                           "memfd_create",
                           "execveat",
                           "pidfd_open",
                           "pidfd_send_signal",
                           "mq_open",
                           "shmget",
                           "semget",
                           "msgget",
                           "getrandom",
                           "seccomp",
                           "landlock_restrict_self",
                           "close_range",
                           "vfork",
                           "fork"}) {
    EXPECT_EQ(filter.ask(name), kAllowed) << name;
  }
}

TEST(DefaultFilter, EndsTheRunForHostileCalls) {
  const Filter filter;
  for (const char* name : {"unshare",
                           "setns",
                           "mount",
                           "umount2",
                           "pivot_root",
                           "open_tree",
                           "move_mount",
                           "fsopen",
                           "fsconfig",
                           "fsmount",
                           "fspick",
                           "mount_setattr",
                           "ptrace",
                           "process_vm_readv",
                           "process_vm_writev",
                           "pidfd_getfd",
                           "bpf",
                           "perf_event_open",
                           "userfaultfd",
                           "add_key",
                           "request_key",
                           "keyctl",
                           "init_module",
                           "finit_module",
                           "delete_module",
                           "kexec_load",
                           "kexec_file_load",
                           "reboot",
                           "swapon",
                           "swapoff",
                           "quotactl",
                           "quotactl_fd",
                           "acct",
                           "open_by_handle_at",
                           "settimeofday",
                           "clock_settime",
                           "clock_adjtime",
                           "adjtimex",
                           "iopl",
                           "ioperm"}) {
    EXPECT_EQ(filter.ask(name), kHostile) << name;
    EXPECT_EQ(filter.ask(name, {~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL}), kHostile) << name;
  }
}

TEST(DefaultFilter, DeniesTheRestWithTheErrnoThatFallbacksExpect) {
  const Filter filter;
  EXPECT_EQ(filter.ask("io_uring_setup"), denied(ENOSYS));
  EXPECT_EQ(filter.ask("io_uring_enter"), denied(ENOSYS));
  EXPECT_EQ(filter.ask("kcmp"), denied(EPERM));
  EXPECT_EQ(filter.ask("process_madvise"), denied(EPERM));
  EXPECT_EQ(filter.ask("fanotify_init"), denied(EPERM));
  EXPECT_EQ(filter.ask("syslog"), denied(EPERM));
  EXPECT_EQ(filter.ask("sethostname"), denied(EPERM));
  EXPECT_EQ(filter.ask("chroot"), denied(EPERM));
  EXPECT_EQ(filter.ask("modify_ldt"), denied(EPERM));
  EXPECT_EQ(filter.ask("name_to_handle_at"), denied(EOPNOTSUPP));
}

TEST(DefaultFilter, AnswersWhatLibrariesAskAtStartWithoutAReport) {
  const Filter filter;
  EXPECT_EQ(filter.ask("clone3"), quiet(ENOSYS));
  EXPECT_EQ(filter.ask("mbind"), quiet(EPERM));
  EXPECT_EQ(filter.ask("sync"), quiet(0)) << "the host's disks are not flushed for a stranger";
}

TEST(Clone, MakesThreadsAndProcessesButNoNamespace) {
  const Filter filter;
  constexpr std::uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                    CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                    CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  EXPECT_EQ(filter.ask("clone", {kThread}), kAllowed);
  EXPECT_EQ(filter.ask("clone", {CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD}), kAllowed);
  EXPECT_EQ(filter.ask("clone", {CLONE_VM | CLONE_VFORK | SIGCHLD}), kAllowed);
  EXPECT_EQ(filter.ask("clone", {CLONE_PIDFD | SIGCHLD}), kAllowed);
  for (const std::uint64_t flag : Arguments{
           std::uint64_t{CLONE_NEWNS}, std::uint64_t{CLONE_NEWCGROUP}, std::uint64_t{CLONE_NEWUTS},
           std::uint64_t{CLONE_NEWIPC}, std::uint64_t{CLONE_NEWUSER}, std::uint64_t{CLONE_NEWPID},
           std::uint64_t{CLONE_NEWNET}}) {
    EXPECT_EQ(filter.ask("clone", {flag | SIGCHLD}), kHostile);
    EXPECT_EQ(filter.ask("clone", {flag | kThread | kHighBits}), kHostile);
    EXPECT_EQ(filter.ask("clone", {flag | CLONE_FILES | SIGCHLD}), kHostile);
  }
}

// It could take locks and die, and they would stay.
TEST(Clone, MakesNoProcessThatSharesADescriptorTable) {
  for (const std::uint32_t arch : {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64}) {
    const Filter filter(arch);
    for (const std::uint64_t high : {std::uint64_t{0}, kHighBits}) {
      EXPECT_EQ(filter.ask("clone", {high | CLONE_FILES | SIGCHLD}), denied(EINVAL));
      EXPECT_EQ(filter.ask("clone", {high | CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED}),
                denied(EINVAL));
      EXPECT_EQ(filter.ask("clone", {high | CLONE_VM | CLONE_SIGHAND | CLONE_FILES | CLONE_VFORK}),
                denied(EINVAL));
      EXPECT_EQ(filter.ask("clone", {high | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD}), kAllowed);
    }
  }
}

// CVE-2017-5226, CVE-2019-10063: the kernel reads 32 bits of the request.
TEST(Ioctl, NeverTypesIntoATerminalAlsoWithHighBits) {
  const Filter filter;
  for (const std::uint64_t request : Arguments{std::uint64_t{TIOCSTI}, std::uint64_t{TIOCLINUX},
                                               std::uint64_t{TIOCSETD}, std::uint64_t{0}}) {
    EXPECT_EQ(filter.ask("ioctl", {0, request}), denied(ENOTTY)) << request;
    EXPECT_EQ(filter.ask("ioctl", {0, request | kHighBits}), denied(ENOTTY)) << request;
  }
  EXPECT_EQ(filter.ask("ioctl", {0, TCGETS}), kAllowed);
  EXPECT_EQ(filter.ask("ioctl", {0, FIONREAD}), kAllowed);
  EXPECT_EQ(filter.ask("ioctl", {0, TCGETS | kHighBits}), kAllowed) << "the kernel sees TCGETS";
}

TEST(Socket, IsUnixOrPlainInet) {
  const Filter filter;
  const std::uint64_t flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
  EXPECT_EQ(filter.ask("socket", {AF_UNIX, SOCK_STREAM | flags, 0}), kAllowed);
  EXPECT_EQ(filter.ask("socket", {AF_UNIX, SOCK_SEQPACKET, 0}), kAllowed);
  EXPECT_EQ(filter.ask("socket", {AF_INET, SOCK_STREAM | flags, 0}), kAllowed);
  EXPECT_EQ(filter.ask("socket", {AF_INET6, SOCK_DGRAM, 17}), kAllowed);
  const Outcome refused = denied(EAFNOSUPPORT);
  for (const std::uint64_t family :
       Arguments{AF_NETLINK, AF_PACKET, AF_VSOCK, AF_ALG, AF_KEY, AF_BLUETOOTH, AF_XDP, AF_TIPC,
                 AF_RDS, AF_CAN, AF_UNSPEC}) {
    EXPECT_EQ(filter.ask("socket", {family, SOCK_DGRAM, 0}), refused) << family;
    EXPECT_EQ(filter.ask("socket", {family | kHighBits, SOCK_STREAM, 0}), refused) << family;
  }
  EXPECT_EQ(filter.ask("socket", {AF_INET, SOCK_RAW, 1}), refused);
  EXPECT_EQ(filter.ask("socket", {AF_INET, SOCK_RAW | flags, 0}), refused);
  EXPECT_EQ(filter.ask("socket", {AF_INET, SOCK_SEQPACKET, 132}), refused) << "SCTP";
  EXPECT_EQ(filter.ask("socket", {AF_INET, SOCK_STREAM, 132}), refused) << "SCTP";
  EXPECT_EQ(filter.ask("socket", {AF_INET, SOCK_STREAM, 262}), refused) << "MPTCP";
  EXPECT_EQ(filter.ask("socket", {AF_INET, 6, 33}), refused) << "DCCP";
  EXPECT_EQ(filter.ask("socketpair", {AF_UNIX, SOCK_STREAM, 0}), kAllowed);
  EXPECT_EQ(filter.ask("socketpair", {AF_INET, SOCK_STREAM, 0}), refused);
}

TEST(Prlimit, ReadsAnyAndSetsAllButCoreOfOneself) {
  const Filter filter;
  constexpr std::uint64_t kPointer = 0x7ffdeadbeef0;
  EXPECT_EQ(filter.ask("prlimit64", {0, RLIMIT_NOFILE, kPointer}), kAllowed);
  EXPECT_EQ(filter.ask("prlimit64", {0, RLIMIT_CORE, 0}), kAllowed);
  EXPECT_EQ(filter.ask("prlimit64", {0, RLIMIT_CORE, kPointer}), denied(EPERM));
  EXPECT_EQ(filter.ask("prlimit64", {0, RLIMIT_CORE | kHighBits, kPointer}), denied(EPERM));
  EXPECT_EQ(filter.ask("prlimit64", {1, RLIMIT_CPU, kPointer}), denied(EPERM)) << "init";
  EXPECT_EQ(filter.ask("prlimit64", {1, RLIMIT_CPU, 0}), denied(EPERM));
  EXPECT_EQ(filter.ask("prlimit64", {1 | kHighBits, RLIMIT_CPU, kPointer}), denied(EPERM));
  EXPECT_EQ(filter.ask("setrlimit", {RLIMIT_CORE, kPointer}), denied(EPERM));
  EXPECT_EQ(filter.ask("setrlimit", {RLIMIT_CORE | kHighBits, kPointer}), denied(EPERM));
  EXPECT_EQ(filter.ask("setrlimit", {RLIMIT_STACK, kPointer}), kAllowed);
}

// A pointer whose low half is zero is not a null pointer: mmap can make one.
TEST(Prlimit, IsNotFooledByAPointerAtAMultipleOf4G) {
  const Filter filter;
  EXPECT_EQ(filter.ask("prlimit64", {0, RLIMIT_CORE, 0x100000000}), denied(EPERM));
  EXPECT_EQ(filter.ask("prlimit64", {0, RLIMIT_CORE, 0x7fff00000000}), denied(EPERM));
}

TEST(Scheduling, IsChangedForOneselfOnly) {
  const Filter filter;
  for (const char* name :
       {"sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"}) {
    EXPECT_EQ(filter.ask(name, {0}), kAllowed) << name;
    EXPECT_EQ(filter.ask(name, {1}), denied(EPERM)) << name;
    EXPECT_EQ(filter.ask(name, {1 | kHighBits}), denied(EPERM)) << name;
  }
  EXPECT_EQ(filter.ask("setpriority", {PRIO_PROCESS, 0, 5}), kAllowed);
  EXPECT_EQ(filter.ask("setpriority", {PRIO_PROCESS, 1, 5}), denied(EPERM));
  EXPECT_EQ(filter.ask("setpriority", {PRIO_USER, 0, 5}), denied(EPERM));
  EXPECT_EQ(filter.ask("setpriority", {PRIO_PGRP, 0, 5}), denied(EPERM));
  EXPECT_EQ(filter.ask("ioprio_set", {1, 0, 7}), kAllowed);
  EXPECT_EQ(filter.ask("ioprio_set", {1, 1, 7}), denied(EPERM));
  EXPECT_EQ(filter.ask("ioprio_set", {3, 0, 7}), denied(EPERM));
}

TEST(Prctl, TakesOnlyListedOptions) {
  const Filter filter;
  EXPECT_EQ(filter.ask("prctl", {PR_SET_NAME}), kAllowed);
  EXPECT_EQ(filter.ask("prctl", {PR_SET_NO_NEW_PRIVS, 1}), kAllowed);
  EXPECT_EQ(filter.ask("prctl", {PR_SET_SECCOMP, SECCOMP_MODE_FILTER}), kAllowed);
  EXPECT_EQ(filter.ask("prctl", {PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 1}), denied(EINVAL));
  for (const std::uint64_t option :
       Arguments{PR_SET_MM, PR_SET_SECUREBITS, PR_CAPBSET_DROP, PR_SET_PTRACER, PR_MCE_KILL,
                 PR_SET_SPECULATION_CTRL, PR_SET_KEEPCAPS}) {
    EXPECT_EQ(filter.ask("prctl", {option}), denied(EINVAL)) << option;
    EXPECT_EQ(filter.ask("prctl", {option | kHighBits}), denied(EINVAL)) << option;
  }
}

TEST(Personality, IsAskedOrReset) {
  const Filter filter;
  EXPECT_EQ(filter.ask("personality", {0xffffffff}), kAllowed);
  EXPECT_EQ(filter.ask("personality", {PER_LINUX}), kAllowed);
  EXPECT_EQ(filter.ask("personality", {ADDR_NO_RANDOMIZE}), denied(EPERM));
  EXPECT_EQ(filter.ask("personality", {READ_IMPLIES_EXEC | kHighBits}), denied(EPERM));
}

TEST(Mknod, MakesPipesButNoDevice) {
  const Filter filter;
  EXPECT_EQ(filter.ask("mknodat", {0, 0, S_IFIFO | 0600}), kAllowed);
  EXPECT_EQ(filter.ask("mknod", {0, S_IFSOCK | 0600}), kAllowed);
  for (const std::uint64_t mode : Arguments{S_IFBLK, S_IFCHR}) {
    EXPECT_EQ(filter.ask("mknod", {0, mode | 0666}), denied(EPERM));
    EXPECT_EQ(filter.ask("mknodat", {0, 0, mode | 0666 | kHighBits}), denied(EPERM));
  }
}

TEST(JudgeFilter, HasNoSockets) {
  const Filter filter(AUDIT_ARCH_X86_64, "judge");
  EXPECT_EQ(filter.ask("socket", {AF_UNIX, SOCK_STREAM, 0}), denied(EACCES));
  EXPECT_EQ(filter.ask("socketpair", {AF_UNIX, SOCK_STREAM, 0}), kAllowed);
  EXPECT_EQ(filter.ask("mount"), kHostile);
}

TEST(ProfileFilter, AllowsANamedFilteredCallWithoutConditions) {
  const auto policy = parse_policy(
      "name = \"x\"\ndescription = \"x\"\n[seccomp]\nallow = [\"ioctl\", \"ptrace\"]\n", "p");
  ASSERT_TRUE(policy) << test::error_of(policy);
  const std::uint32_t arch = policy->seccomp.audit_arch;
  for (const std::uint64_t request : Arguments{std::uint64_t{TCGETS}, std::uint64_t{TIOCSTI}}) {
    const Call call{*syscall_number("ioctl", arch), arch, 0, {0, request}};
    EXPECT_EQ(outcome_of(policy->seccomp, call), kAllowed);
  }
  EXPECT_EQ(outcome_of(policy->seccomp, {*syscall_number("ptrace", arch), arch, 0, {}}), kAllowed);
  EXPECT_EQ(outcome_of(policy->seccomp, {*syscall_number("mount", arch), arch, 0, {}}), kHostile);
}

}  // namespace
}  // namespace sbx::policy
