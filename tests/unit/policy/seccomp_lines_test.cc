// What attackers elsewhere have called, line by line, for every shipped profile on both
// architectures: the compiled filter and init's answers together. The attacks with what the kernel
// does besides are in tests/adversarial.
#include <linux/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cerrno>
#include <set>

#include "runtime/policy/policy.h"
#include "tests/unit/policy/filter_under_test.h"

namespace sbx::policy {
namespace {

using test::Call;
using test::denied;
using test::Filter;
using test::kAllowed;
using test::kHighBits;
using test::kHostile;
using test::Outcome;
using test::outcome_of;
using test::quiet;

using Arguments = std::array<std::uint64_t, 6>;
constexpr int kUnfiltered = -1;

struct Attack {
  const char* call;
  Arguments arguments;
  int filtered;  // the argument that is looked at, also tried with high bits
  Outcome expected;
};

struct Line {
  const char* name;
  std::vector<Attack> attacks;
};

std::vector<Attack> all(std::initializer_list<const char*> calls, Outcome expected) {
  std::vector<Attack> attacks;
  for (const char* const call : calls) attacks.push_back({call, {}, kUnfiltered, expected});
  return attacks;
}

std::vector<Attack> clones() {
  std::vector<Attack> attacks;
  for (const std::uint64_t flag :
       {std::uint64_t{CLONE_NEWNS}, std::uint64_t{CLONE_NEWCGROUP}, std::uint64_t{CLONE_NEWUTS},
        std::uint64_t{CLONE_NEWIPC}, std::uint64_t{CLONE_NEWUSER}, std::uint64_t{CLONE_NEWPID},
        std::uint64_t{CLONE_NEWNET}}) {
    attacks.push_back({"clone", {flag | 17}, 0, kHostile});
  }
  return attacks;
}

std::vector<Attack> sockets() {
  const Outcome refused = denied(EAFNOSUPPORT);
  return {{"socket", {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, 0, refused},
          {"socket", {AF_PACKET, SOCK_RAW, 0}, 0, refused},
          {"socket", {AF_VSOCK, SOCK_STREAM, 0}, 0, refused},
          {"socket", {AF_ALG, SOCK_SEQPACKET, 0}, 0, refused},
          {"socket", {AF_KEY, SOCK_RAW, 2}, 0, refused},
          {"socket", {AF_INET, SOCK_RAW, 1}, 1, refused},
          {"socket", {AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1}, 0, refused},
          {"socket", {AF_INET6, SOCK_RAW, 58}, 1, refused},
          {"socket", {AF_INET, SOCK_DGRAM, 1}, 2, refused},
          {"socketpair", {AF_INET, SOCK_STREAM, 0}, 0, refused}};
}

std::vector<Attack> own_process() {
  return {{"personality", {ADDR_NO_RANDOMIZE}, 0, denied(EPERM)},
          {"personality", {READ_IMPLIES_EXEC}, 0, denied(EPERM)},
          {"modify_ldt", {1}, kUnfiltered, denied(EPERM)},
          {"prctl", {PR_SET_MM}, 0, denied(EINVAL)},
          {"prctl", {PR_SET_SECUREBITS}, 0, denied(EINVAL)},
          {"prctl", {PR_CAPBSET_DROP}, 0, denied(EINVAL)},
          {"prctl", {PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE}, 1, denied(EINVAL)},
          {"prctl", {PR_SET_PTRACER}, 0, denied(EINVAL)},
          {"prctl", {PR_MCE_KILL}, 0, denied(EINVAL)},
          {"prctl", {PR_SET_VMA}, 0, denied(EINVAL)},
          {"setrlimit", {RLIMIT_CORE, 0x1000}, 0, denied(EPERM)},
          {"prlimit64", {0, RLIMIT_CORE, 0x1000}, 1, denied(EPERM)},
          {"prlimit64", {0, RLIMIT_CORE, 0x100000000}, 1, denied(EPERM)}};
}

std::vector<Attack> init_process() {
  return {{"prlimit64", {1, RLIMIT_CPU, 0x1000}, 0, denied(EPERM)},
          {"sched_setaffinity", {1}, 0, denied(EPERM)},
          {"sched_setscheduler", {1}, 0, denied(EPERM)},
          {"sched_setparam", {1}, 0, denied(EPERM)},
          {"sched_setattr", {1}, 0, denied(EPERM)},
          {"setpriority", {PRIO_PROCESS, 1}, 1, denied(EPERM)},
          {"ioprio_set", {1, 1}, 1, denied(EPERM)},
          {"kcmp", {1}, kUnfiltered, denied(EPERM)},
          {"process_madvise", {3}, kUnfiltered, denied(EPERM)}};
}

std::vector<Attack> huge_pages() {
  constexpr std::uint64_t kTwoMiB = std::uint64_t{21} << MAP_HUGE_SHIFT;
  const std::uint64_t anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  return {{"mmap", {0, 4096, 0, anonymous | MAP_HUGETLB}, 3, denied(ENOMEM)},
          {"mmap", {0, 4096, 0, anonymous | MAP_HUGETLB | kTwoMiB}, 3, denied(ENOMEM)},
          {"mmap", {0, 4096, 0, anonymous}, 3, kAllowed},
          {"mmap", {MAP_HUGETLB, MAP_HUGETLB, MAP_HUGETLB, MAP_SHARED}, 3, kAllowed},
          {"memfd_create", {0, MFD_CLOEXEC | MFD_HUGETLB}, 1, denied(ENOMEM)},
          {"memfd_create", {0, MFD_CLOEXEC | MFD_ALLOW_SEALING}, 1, kAllowed}};
}

// The image's files, in memory and on the host's disk.
std::vector<Attack> page_cache() {
  constexpr std::uint64_t kDontCache = 0x80;  // RWF_DONTCACHE of newer headers
  return {{"preadv2", {3, 0, 1, 0, 0, 0}, 5, kAllowed},
          {"preadv2", {3, 0, 1, 0, 0, RWF_HIPRI}, 5, kAllowed},
          {"preadv2", {3, 0, 1, 0, 0, RWF_NOWAIT}, 5, denied(EOPNOTSUPP)},
          {"preadv2", {3, 0, 1, 0, 0, RWF_HIPRI | RWF_NOWAIT}, 5, denied(EOPNOTSUPP)},
          {"preadv2", {3, 0, 1, 0, 0, kDontCache}, 5, denied(EOPNOTSUPP)},
          {"madvise", {0x1000, 0x1000, MADV_DONTNEED}, 2, kAllowed},
          {"madvise", {0x1000, 0x1000, MADV_FREE}, 2, kAllowed},
          {"madvise", {0x1000, 0x1000, MADV_POPULATE_WRITE}, 2, kAllowed},
          {"madvise", {0x1000, 0x1000, MADV_COLD}, 2, denied(EINVAL)},
          {"madvise", {0x1000, 0x1000, MADV_PAGEOUT}, 2, denied(EINVAL)}};
}

std::vector<Line> lines() {
  return {
      {"namespaces", all({"unshare", "setns"}, kHostile)},
      {"clone flags", clones()},
      {"clone3", all({"clone3"}, quiet(ENOSYS))},
      {"mount", all({"mount", "umount2", "pivot_root"}, kHostile)},
      {"new mount interface",
       all({"open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"},
           kHostile)},
      {"io_uring", all({"io_uring_setup", "io_uring_enter", "io_uring_register"}, denied(ENOSYS))},
      {"tracing",
       all({"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"}, kHostile)},
      {"memfd and execveat", all({"memfd_create", "execveat", "execve"}, kAllowed)},
      {"keys", all({"keyctl", "add_key", "request_key"}, kHostile)},
      {"kernel programs", all({"bpf", "perf_event_open", "userfaultfd"}, kHostile)},
      {"modules and kexec",
       all({"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"},
           kHostile)},
      {"handles", all({"open_by_handle_at"}, kHostile)},
      {"administration",
       all({"quotactl", "quotactl_fd", "swapon", "swapoff", "reboot", "acct"}, kHostile)},
      {"host's state",
       all({"syslog", "fanotify_init", "sethostname", "setdomainname", "chroot"}, denied(EPERM))},
      {"clocks", all({"settimeofday", "clock_settime", "adjtimex", "clock_adjtime"}, kHostile)},
      {"ports", all({"iopl", "ioperm"}, kHostile)},
      {"own process", own_process()},
      {"init", init_process()},
      {"terminals",
       {{"ioctl", {0, TIOCSTI}, 1, denied(ENOTTY)},
        {"ioctl", {0, TIOCLINUX}, 1, denied(ENOTTY)},
        {"ioctl", {0, TIOCSETD}, 1, denied(ENOTTY)}}},
      {"devices",
       {{"mknod", {0, S_IFCHR | 0600}, 1, denied(EPERM)},
        {"mknodat", {0, 0, S_IFBLK | 0600}, 2, denied(EPERM)}}},
      {"sockets", sockets()},
      {"attributes", all({"setxattr", "lsetxattr", "fsetxattr"}, quiet(EOPNOTSUPP))},
      {"huge pages", huge_pages()},
      {"flushes", all({"sync", "syncfs", "fsync", "fdatasync", "sync_file_range"}, quiet(0))},
      {"page cache", page_cache()},
      {"page cache, evicted", all({"fadvise64"}, quiet(0))},
      {"page cache, asked", all({"cachestat", "mincore"}, quiet(ENOSYS))},
      {"nested filters", all({"seccomp"}, kAllowed)},
  };
}

// Calls that one of the architectures does not have.
const std::set<std::string> kOnlyX86 = {"iopl", "ioperm", "modify_ldt", "mknod"};

// A profile that takes sockets away altogether does so with an errno of its own.
Outcome in_profile(const Attack& attack, const std::string& profile) {
  const bool no_sockets = profile == "judge" && std::string_view(attack.call) == "socket";
  return no_sockets ? denied(EACCES) : attack.expected;
}

class EveryLine : public ::testing::TestWithParam<std::tuple<std::uint32_t, std::string>> {
 protected:
  [[nodiscard]] std::uint32_t arch() const { return std::get<0>(GetParam()); }
  [[nodiscard]] const std::string& profile() const { return std::get<1>(GetParam()); }
};

TEST_P(EveryLine, IsAnsweredAlsoWithHighBits) {
  const Filter filter(arch(), profile());
  for (const Line& line : lines()) {
    for (const Attack& attack : line.attacks) {
      if (arch() == AUDIT_ARCH_AARCH64 && kOnlyX86.contains(attack.call)) {
        EXPECT_FALSE(syscall_number(attack.call, arch())) << attack.call;
        continue;
      }
      const Outcome expected = in_profile(attack, profile());
      EXPECT_EQ(filter.ask(attack.call, attack.arguments), expected)
          << line.name << ": " << attack.call;
      Arguments high = attack.arguments;
      if (attack.filtered != kUnfiltered) {
        high[static_cast<std::size_t>(attack.filtered)] |= kHighBits;
      }
      EXPECT_EQ(filter.ask(attack.call, high), expected)
          << line.name << ", high bits: " << attack.call;
    }
  }
}

TEST_P(EveryLine, OfAForeignAbiIsHostile) {
  const Filter filter(arch(), profile());
  constexpr std::uint32_t kAll[] = {
      AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, AUDIT_ARCH_ARM, AUDIT_ARCH_AARCH64, 0, ~std::uint32_t{0}};
  for (const std::uint32_t other : kAll) {
    if (other == arch()) continue;
    for (std::uint32_t nr = 0; nr < 600; ++nr) {
      ASSERT_EQ(outcome_of(filter.policy(), {nr, other, 0, {}}), kHostile)
          << std::hex << other << " " << nr;
    }
  }
  if (arch() != AUDIT_ARCH_X86_64) return;
  for (std::uint32_t nr = 0; nr < 600; ++nr) {
    ASSERT_EQ(outcome_of(filter.policy(), {kX32Bit | nr, arch(), 0, {}}), kHostile) << nr;
  }
}

TEST_P(EveryLine, OfTheFutureIsUnknown) {
  const Filter filter(arch(), profile());
  // 463 is setxattrat: no way around what is said of setxattr.
  for (const std::uint32_t nr : {462U, 463U, 480U, 511U, 512U, 1000U, 4096U, 0x3fffffffU, ~0U}) {
    EXPECT_EQ(outcome_of(filter.policy(), {nr, arch(), 0, {}}), denied(ENOSYS)) << nr;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryProfile, EveryLine,
                         ::testing::Combine(::testing::Values(AUDIT_ARCH_X86_64,
                                                              AUDIT_ARCH_AARCH64),
                                            ::testing::ValuesIn(shipped_profiles())),
                         [](const auto& chosen) {
                           const bool x86 = std::get<0>(chosen.param) == AUDIT_ARCH_X86_64;
                           return std::get<1>(chosen.param) + (x86 ? "_x86_64" : "_aarch64");
                         });

}  // namespace
}  // namespace sbx::policy
