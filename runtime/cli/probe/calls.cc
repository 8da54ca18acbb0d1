// System calls that are tried as they are. Where one could do harm when it gets through, an
// argument is one that the kernel refuses after it has looked at the caller's rights (a null
// pointer, a bad descriptor, no such operation), or that leaves everything as it is.
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/netlink.h>
#include <linux/reboot.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "runtime/cli/probe/acts.h"

// What one of the two architectures does not have, or newer headers than the oldest we build with.
#ifndef SYS_iopl
#define SYS_iopl (-1)
#define SYS_ioperm (-1)
#define SYS_modify_ldt (-1)
#define SYS_mknod (-1)
#endif
#ifndef SYS_kexec_file_load
#define SYS_kexec_file_load (-1)
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

namespace sbx::probe {
namespace {

constexpr long kNoSuchOperation = 9999;
constexpr long kBadDescriptor = -1;
constexpr long kBadPointer = 1;
constexpr long kPacketOptions = 6;  // IPV6_2292PKTOPTIONS of <linux/in6.h>, which clashes with ours
constexpr long kPriorityBestEffort = 2L << 13;  // ioprio_set(2): a class, at its highest level

long at(const void* object) {
  return reinterpret_cast<long>(object);
}

mount_attr no_change{};
rlimit no_core{0, 1};
char typed = 'x';
const char* const kNoFile = "/proc/self/sbx-probe";
const char* const kAccessList = "system.posix_acl_access";
unsigned map_size = 0;
unsigned long all_processors[16] = {~0UL};
sched_param no_priority{};
// struct sched_attr of its first version: SCHED_OTHER, nice 0.
struct {
  std::uint32_t size = 48, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;
} no_deadline;

}  // namespace

const Call kCalls[] = {
    // namespaces
    {"unshare_user", SYS_unshare, {CLONE_NEWUSER}},
    {"unshare_mount", SYS_unshare, {CLONE_NEWNS}},
    {"unshare_net", SYS_unshare, {CLONE_NEWNET}},
    {"unshare_time", SYS_unshare, {0x80}},  // CLONE_NEWTIME
    {"clone3", SYS_clone3, {0, 0}},
    // both mount interfaces
    {"mount", SYS_mount, {at("sbx-probe"), at("/tmp"), at("tmpfs"), 0, 0}},
    {"umount2", SYS_umount2, {at("/proc"), MNT_EXPIRE}},  // marks it, no more
    {"pivot_root", SYS_pivot_root, {0, 0}},
    {"open_tree", SYS_open_tree, {AT_FDCWD, at("/tmp"), OPEN_TREE_CLONE}},
    {"move_mount", SYS_move_mount, {kBadDescriptor, at(""), kBadDescriptor, at(""), 0x44}},
    {"fsopen", SYS_fsopen, {at("tmpfs"), 0}},
    {"fsconfig", SYS_fsconfig, {kBadDescriptor, 6, 0, 0, 0}},  // FSCONFIG_CMD_CREATE
    {"fsmount", SYS_fsmount, {kBadDescriptor, 0, 0}},
    {"fspick", SYS_fspick, {AT_FDCWD, at("/"), 0}},
    {"mount_setattr",
     SYS_mount_setattr,
     {AT_FDCWD, at("/tmp"), 0, at(&no_change), sizeof no_change}},
    // work done past the filter
    {"io_uring_setup", SYS_io_uring_setup, {0, 0}},
    {"io_uring_enter", SYS_io_uring_enter, {kBadDescriptor, 0, 0, 0, 0, 0}},
    {"io_uring_register", SYS_io_uring_register, {kBadDescriptor, 0, 0, 0}},
    // other processes
    {"ptrace", SYS_ptrace, {0x4206, 0, 0, 0}, -1, 1},  // PTRACE_SEIZE: stops nobody
    {"pidfd_getfd", SYS_pidfd_getfd, {kBadDescriptor, 0, 0}},
    // keys
    {"keyctl", SYS_keyctl, {kNoSuchOperation, 0, 0, 0, 0}},
    {"add_key", SYS_add_key, {0, 0, 0, 0, 0}},
    {"request_key", SYS_request_key, {0, 0, 0, 0}},
    // the kernel's own inside
    {"perf_event_open", SYS_perf_event_open, {0, 0, -1, -1, 0}},
    {"userfaultfd", SYS_userfaultfd, {0xffffffffL}},
    {"kexec_load", SYS_kexec_load, {0, 0, 0, ~0L}},
    {"kexec_file_load", SYS_kexec_file_load, {kBadDescriptor, kBadDescriptor, 0, 0, ~0L}},
    {"init_module", SYS_init_module, {0, 0, 0}},
    {"finit_module", SYS_finit_module, {kBadDescriptor, 0, 0}},
    {"delete_module", SYS_delete_module, {0, 0}},
    // the host's administration
    {"quotactl", SYS_quotactl, {kNoSuchOperation << 8 | 7, 0, 0, 0}},
    {"quotactl_fd", SYS_quotactl_fd, {kBadDescriptor, kNoSuchOperation << 8 | 7, 0, 0}},
    {"swapon", SYS_swapon, {kBadPointer, 0}},
    {"swapoff", SYS_swapoff, {kBadPointer}},
    {"reboot", SYS_reboot, {0, 0, 0, 0}},
    {"acct", SYS_acct, {kBadPointer}},
    {"syslog", SYS_syslog, {10, 0, 0}},  // SYSLOG_ACTION_SIZE_BUFFER
    {"fanotify_init", SYS_fanotify_init, {FAN_CLASS_NOTIF | FAN_REPORT_FID, 0}},
    {"sethostname", SYS_sethostname, {0, 1}},
    {"setdomainname", SYS_setdomainname, {0, 1}},
    {"chroot", SYS_chroot, {at("/")}},
    {"iopl", SYS_iopl, {3}},               // of this process alone
    {"ioperm", SYS_ioperm, {0x80, 1, 1}},  // the same; nothing is written there
    // the process's own personality
    {"personality", SYS_personality, {ADDR_NO_RANDOMIZE}, 0},
    {"modify_ldt", SYS_modify_ldt, {0, 0, 0}},
    {"prctl_set_mm", SYS_prctl, {PR_SET_MM, PR_SET_MM_MAP_SIZE, at(&map_size), 0, 0}, 0},
    {"prctl_keepcaps", SYS_prctl, {PR_SET_KEEPCAPS, 1, 0, 0, 0}, 0},
    {"prctl_set_vma", SYS_prctl, {PR_SET_VMA, PR_SET_VMA_ANON_NAME, 0, 0, 0}, 0},  // of no page
    {"prctl_mce_kill", SYS_prctl, {PR_MCE_KILL_GET, 0, 0, 0, 0}, 0},
    // terminals
    {"tiocsti", SYS_ioctl, {kBadDescriptor, TIOCSTI, at(&typed)}, 1},
    {"tioclinux", SYS_ioctl, {kBadDescriptor, TIOCLINUX, at(&typed)}, 1},
    {"tiocsetd", SYS_ioctl, {kBadDescriptor, TIOCSETD, at(&typed)}, 1},
    // sockets
    {"socket_netlink", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, 0},
    {"socket_packet", SYS_socket, {AF_PACKET, SOCK_RAW, 0}, 0},
    {"socket_vsock", SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}, 0},
    {"socket_alg", SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}, 0},
    {"socket_key", SYS_socket, {AF_KEY, SOCK_RAW, 2}, 0},
    {"socket_raw", SYS_socket, {AF_INET, SOCK_RAW, 1}, 0},
    {"socket_raw6", SYS_socket, {AF_INET6, SOCK_RAW, 58}, 0},
    // options that keep something in the kernel; of no socket, so without effect
    {"setsockopt_headers", SYS_setsockopt, {kBadDescriptor, IPPROTO_IPV6, kPacketOptions, 0, 0}, 1},
    {"setsockopt_filter", SYS_setsockopt, {kBadDescriptor, SOL_SOCKET, SO_ATTACH_FILTER, 0, 0}, 2},
    {"setsockopt_protocol", SYS_setsockopt, {kBadDescriptor, IPPROTO_TCP, TCP_ULP, 0, 0}, 2},
    // what is kept with a file, of no file; lists of access rights above all
    {"setxattr", SYS_setxattr, {at(kNoFile), at(kAccessList), 0, 0, 0}},
    {"lsetxattr", SYS_lsetxattr, {at(kNoFile), at(kAccessList), 0, 0, 0}},
    {"fsetxattr", SYS_fsetxattr, {kBadDescriptor, at(kAccessList), 0, 0, 0}},
    // the host's pool of huge pages; without effect for another argument that is wrong
    {"mmap_huge", SYS_mmap, {0, 4096, PROT_NONE, MAP_PRIVATE | MAP_HUGETLB, kBadDescriptor, 0}, 3},
    {"memfd_huge", SYS_memfd_create, {kBadPointer, MFD_HUGETLB}, 1},
    // what others do with files
    {"inotify_init1", SYS_inotify_init1, {IN_CLOEXEC}},
    {"inotify_add_watch", SYS_inotify_add_watch, {kBadDescriptor, at("/"), 1}},
    {"fcntl_notify", SYS_fcntl, {kBadDescriptor, F_NOTIFY, DN_ACCESS}, 1},
    // the image's files, the memory that they are kept in, and the disk below; of no file
    {"fsync", SYS_fsync, {kBadDescriptor}},
    {"fdatasync", SYS_fdatasync, {kBadDescriptor}},
    {"sync_file_range", SYS_sync_file_range, {kBadDescriptor, 0, 0, 0}},
    {"fadvise64", SYS_fadvise64, {kBadDescriptor, 0, 0, POSIX_FADV_DONTNEED}},
    {"cachestat", SYS_cachestat, {kBadDescriptor, 0, 0, 0}},
    {"mincore", SYS_mincore, {kBadPointer, 1, 0}},
    {"preadv2_nowait", SYS_preadv2, {kBadDescriptor, 0, 0, 0, 0, RWF_NOWAIT}, 5},
    {"madvise_pageout", SYS_madvise, {0, 0, MADV_PAGEOUT}, 2},
    // limits and scheduling of others, of pid 1 above all
    {"setrlimit_core", SYS_setrlimit, {RLIMIT_CORE, at(&no_core)}, 0},
    {"prlimit_core", SYS_prlimit64, {0, RLIMIT_CORE, at(&no_core), 0}, 1},
    {"sched_setaffinity",
     SYS_sched_setaffinity,
     {0, sizeof all_processors, at(all_processors)},
     0,
     0},
    {"sched_setscheduler", SYS_sched_setscheduler, {0, SCHED_OTHER, at(&no_priority)}, 0, 0},
    {"sched_setparam", SYS_sched_setparam, {0, at(&no_priority)}, 0, 0},
    {"sched_setattr", SYS_sched_setattr, {0, at(&no_deadline), 0}, 0, 0},
    {"setpriority", SYS_setpriority, {PRIO_PROCESS, 0, 0}, 1, 1},
    {"ioprio_set", SYS_ioprio_set, {1, 0, kPriorityBestEffort}, 1, 1},
    // younger than the policy
    {"future_call", SYS_mseal, {0, 0, 0}},
    {nullptr, 0, {}},
};

void make_call(const Call& call, const char* argument, Answer& answer) {
  long a[6];
  std::memcpy(a, call.arguments, sizeof a);
  if (call.target >= 0) a[call.target] = asks_for(argument, "init") ? 1 : kNoSuchPid;
  if (call.filtered >= 0 && asks_for(argument, "high")) {
    a[call.filtered] = static_cast<long>(static_cast<unsigned long>(a[call.filtered]) | kHighBits);
  }
  if (call.number < 0) {
    answer.error = ENOSYS;
    return;
  }
  note(answer, ::syscall(call.number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

}  // namespace sbx::probe
