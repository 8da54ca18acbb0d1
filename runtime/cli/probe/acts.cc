// Acts that try to do something. Those that could harm a host when they succeed are given arguments
// that reach the kernel's own check without effect (a null pointer, a bad descriptor, no such id).
#include "runtime/cli/probe/acts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace sbx::probe {
namespace {

constexpr long kNoSuchPid = 0x3fffffff;  // above PID_MAX_LIMIT
constexpr long kNoSuchOperation = 9999;

void act_mount(const char*, Answer& answer) {
  note(answer, ::mount("sbx-probe", "/tmp", "tmpfs", 0, nullptr));
}

void act_fsopen(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_fsopen, "tmpfs", 0));
}

void act_pivot_root(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_pivot_root, nullptr, nullptr));
}

void act_unshare_user(const char*, Answer& answer) {
  note(answer, ::unshare(CLONE_NEWUSER));
}

void act_setns(const char*, Answer& answer) {
  note(answer, ::setns(-1, 0));
}

// A thread-less clone with a namespace flag; the child, if there is one, ends at once.
void act_clone_namespace(const char*, Answer& answer) {
  const long child = ::syscall(SYS_clone, CLONE_NEWUSER, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) ::_exit(0);
  note(answer, child);
}

void act_clone3(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_clone3, nullptr, 0));
}

// Connects a datagram socket: no packet is sent, but a route is needed. `argument`: an address.
void act_connect(const char* argument, Answer& answer) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return note(answer, fd);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  if (::inet_pton(AF_INET, argument, &address.sin_addr) != 1) ::abort();
  note(answer, ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

// `argument`: the name of an abstract socket that listens outside.
void act_abstract_socket(const char* argument, Answer& answer) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return note(answer, fd);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = ::strnlen(argument, sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, argument, length);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  note(answer, ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size));
}

void act_netlink(const char*, Answer& answer) {
  note(answer, ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
}

void act_packet_socket(const char*, Answer& answer) {
  note(answer, ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
}

void act_write_file(const char* argument, Answer& answer) {
  note(answer, ::open(argument, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

// Opens for writing something that exists; writes nothing.
void act_open_for_writing(const char* argument, Answer& answer) {
  note(answer, ::open(argument, O_WRONLY | O_CLOEXEC));
}

void act_open(const char* argument, Answer& answer) {
  note(answer, ::open(argument, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

void act_ptrace(const char*, Answer& answer) {
  note(answer, ::ptrace(PTRACE_SEIZE, static_cast<pid_t>(kNoSuchPid), nullptr, nullptr));
}

void act_process_vm_readv(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_process_vm_readv, kNoSuchPid, nullptr, 0, nullptr, 0, 0));
}

// Limits of pid 1, changed from what must not reach it. Outside: of no such process.
void act_prlimit(const char* argument, Answer& answer) {
  const rlimit zero{0, 0};
  const int pid = std::atoi(argument);
  const long target = pid == 0 ? kNoSuchPid : pid;
  note(answer, ::syscall(SYS_prlimit64, target, RLIMIT_CPU, &zero, nullptr));
}

void act_setuid(const char*, Answer& answer) {
  note(answer, ::setresuid(0, 0, 0));
}

void act_keyctl(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_keyctl, kNoSuchOperation, 0, 0, 0, 0));
}

void act_bpf(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_bpf, kNoSuchOperation, nullptr, 0));
}

void act_perf_event_open(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0));
}

void act_userfaultfd(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_userfaultfd, 0xffffffffL));
}

void act_open_by_handle_at(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_open_by_handle_at, -1, nullptr, 0));
}

void act_io_uring(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_io_uring_setup, 0, nullptr));
}

void act_mknod(const char* argument, Answer& answer) {
  const long made = ::mknod(argument, S_IFCHR | 0600, makedev(1, 3));  // as /dev/null
  note(answer, made);
  if (made == 0) (void)::unlink(argument);
}

// A bad descriptor is looked at after the filter. `argument` "high": with bits set above the
// low 32.
void act_tiocsti(const char* argument, Answer& answer) {
  constexpr unsigned long kHighBits = 0x1'0000'0000UL;
  const bool high = std::strcmp(argument, "high") == 0;
  const unsigned long request = TIOCSTI | (high ? kHighBits : 0UL);
  char typed = 'x';
  note(answer, ::syscall(SYS_ioctl, -1, request, &typed));
}

// Lowering the core limit to 0 would switch a piped core_pattern on again.
void act_core_limit(const char*, Answer& answer) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return note(answer, -1);
  limit.rlim_cur = 0;
  note(answer, ::setrlimit(RLIMIT_CORE, &limit));
}

void act_chroot(const char*, Answer& answer) {
  note(answer, ::chroot("/"));
}

void act_sethostname(const char*, Answer& answer) {
  note(answer, ::syscall(SYS_sethostname, nullptr, 1));
}

}  // namespace

const Act kActs[] = {
    {"mount", act_mount},
    {"fsopen", act_fsopen},
    {"pivot_root", act_pivot_root},
    {"unshare_user", act_unshare_user},
    {"setns", act_setns},
    {"clone_namespace", act_clone_namespace},
    {"clone3", act_clone3},
    {"connect", act_connect},
    {"abstract_socket", act_abstract_socket},
    {"netlink", act_netlink},
    {"packet_socket", act_packet_socket},
    {"write_file", act_write_file},
    {"open_for_writing", act_open_for_writing},
    {"open", act_open},
    {"ptrace", act_ptrace},
    {"process_vm_readv", act_process_vm_readv},
    {"prlimit", act_prlimit},
    {"setuid", act_setuid},
    {"keyctl", act_keyctl},
    {"bpf", act_bpf},
    {"perf_event_open", act_perf_event_open},
    {"userfaultfd", act_userfaultfd},
    {"open_by_handle_at", act_open_by_handle_at},
    {"io_uring", act_io_uring},
    {"mknod", act_mknod},
    {"tiocsti", act_tiocsti},
    {"core_limit", act_core_limit},
    {"chroot", act_chroot},
    {"sethostname", act_sethostname},
    {nullptr, nullptr},
};

}  // namespace sbx::probe
