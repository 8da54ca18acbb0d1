// A table: the names that policy/seccomp/arguments.toml may use, with the kernel's own values. All
// of them are the same on x86-64 and aarch64, so that a policy compiled on the one is right on the
// other.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>

#include "runtime/policy/seccomp_rules.h"

// Some are macros, some enumerators of an anonymous enum: both convert.
#define SBX_CONSTANT(name) {#name, static_cast<std::uint64_t>(name)}

namespace sbx::policy {
namespace {

// The name of <linux/ioprio.h>, an enumerator there, without the inline functions beside it.
constexpr int IOPRIO_WHO_PROCESS = 1;

struct Constant {
  std::string_view name;
  std::uint64_t value;
};

const Constant kConstants[] = {
    // ioctl
    SBX_CONSTANT(TCGETS),
    SBX_CONSTANT(TIOCGWINSZ),
    SBX_CONSTANT(TIOCGPGRP),
    SBX_CONSTANT(TIOCOUTQ),
    SBX_CONSTANT(FIONREAD),
    SBX_CONSTANT(FIONBIO),
    SBX_CONSTANT(FIOASYNC),
    SBX_CONSTANT(FIOCLEX),
    SBX_CONSTANT(FIONCLEX),
    SBX_CONSTANT(FICLONE),
    // fcntl
    SBX_CONSTANT(F_DUPFD),
    SBX_CONSTANT(F_DUPFD_CLOEXEC),
    SBX_CONSTANT(F_GETFD),
    SBX_CONSTANT(F_SETFD),
    SBX_CONSTANT(F_GETFL),
    SBX_CONSTANT(F_SETFL),
    SBX_CONSTANT(F_GETLK),
    SBX_CONSTANT(F_SETLK),
    SBX_CONSTANT(F_SETLKW),
    SBX_CONSTANT(F_SETOWN),
    SBX_CONSTANT(F_GETOWN),
    SBX_CONSTANT(F_SETOWN_EX),
    SBX_CONSTANT(F_GETOWN_EX),
    SBX_CONSTANT(F_SETSIG),
    SBX_CONSTANT(F_GETSIG),
    SBX_CONSTANT(F_SETPIPE_SZ),
    SBX_CONSTANT(F_GETPIPE_SZ),
    SBX_CONSTANT(F_ADD_SEALS),
    SBX_CONSTANT(F_GET_SEALS),
    // setsockopt
    SBX_CONSTANT(SOL_SOCKET),
    SBX_CONSTANT(SO_REUSEADDR),
    SBX_CONSTANT(SO_REUSEPORT),
    SBX_CONSTANT(SO_BROADCAST),
    SBX_CONSTANT(SO_KEEPALIVE),
    SBX_CONSTANT(SO_OOBINLINE),
    SBX_CONSTANT(SO_LINGER),
    SBX_CONSTANT(SO_SNDBUF),
    SBX_CONSTANT(SO_RCVBUF),
    SBX_CONSTANT(SO_RCVLOWAT),
    SBX_CONSTANT(SO_PASSCRED),
    SBX_CONSTANT(SO_TIMESTAMP_OLD),
    SBX_CONSTANT(SO_RCVTIMEO_OLD),
    SBX_CONSTANT(SO_SNDTIMEO_OLD),
    SBX_CONSTANT(SO_RCVTIMEO_NEW),
    SBX_CONSTANT(SO_SNDTIMEO_NEW),
    SBX_CONSTANT(TCP_NODELAY),
    SBX_CONSTANT(TCP_MAXSEG),
    SBX_CONSTANT(TCP_CORK),
    SBX_CONSTANT(TCP_KEEPIDLE),
    SBX_CONSTANT(TCP_KEEPINTVL),
    SBX_CONSTANT(TCP_KEEPCNT),
    SBX_CONSTANT(TCP_SYNCNT),
    SBX_CONSTANT(TCP_LINGER2),
    SBX_CONSTANT(TCP_DEFER_ACCEPT),
    SBX_CONSTANT(TCP_QUICKACK),
    SBX_CONSTANT(TCP_USER_TIMEOUT),
    SBX_CONSTANT(IP_TOS),
    SBX_CONSTANT(IP_TTL),
    SBX_CONSTANT(IP_PKTINFO),
    SBX_CONSTANT(IP_MTU_DISCOVER),
    SBX_CONSTANT(IP_RECVERR),
    SBX_CONSTANT(IP_MULTICAST_TTL),
    SBX_CONSTANT(IP_MULTICAST_LOOP),
    SBX_CONSTANT(IPPROTO_IPV6),
    SBX_CONSTANT(IPV6_V6ONLY),
    SBX_CONSTANT(IPV6_UNICAST_HOPS),
    SBX_CONSTANT(IPV6_MULTICAST_HOPS),
    SBX_CONSTANT(IPV6_MULTICAST_LOOP),
    SBX_CONSTANT(IPV6_MTU_DISCOVER),
    SBX_CONSTANT(IPV6_RECVERR),
    SBX_CONSTANT(IPV6_RECVPKTINFO),
    SBX_CONSTANT(IPV6_TCLASS),
    // mmap, memfd_create
    SBX_CONSTANT(MAP_HUGETLB),
    SBX_CONSTANT(MFD_HUGETLB),
    // prctl
    SBX_CONSTANT(PR_SET_PDEATHSIG),
    SBX_CONSTANT(PR_GET_PDEATHSIG),
    SBX_CONSTANT(PR_GET_DUMPABLE),
    SBX_CONSTANT(PR_SET_DUMPABLE),
    SBX_CONSTANT(PR_GET_KEEPCAPS),
    SBX_CONSTANT(PR_SET_NAME),
    SBX_CONSTANT(PR_GET_NAME),
    SBX_CONSTANT(PR_GET_SECCOMP),
    SBX_CONSTANT(PR_SET_SECCOMP),
    SBX_CONSTANT(PR_CAPBSET_READ),
    SBX_CONSTANT(PR_GET_SECUREBITS),
    SBX_CONSTANT(PR_GET_TIMERSLACK),
    SBX_CONSTANT(PR_SET_TIMERSLACK),
    SBX_CONSTANT(PR_SET_CHILD_SUBREAPER),
    SBX_CONSTANT(PR_GET_CHILD_SUBREAPER),
    SBX_CONSTANT(PR_SET_NO_NEW_PRIVS),
    SBX_CONSTANT(PR_GET_NO_NEW_PRIVS),
    SBX_CONSTANT(PR_GET_TID_ADDRESS),
    SBX_CONSTANT(PR_SET_THP_DISABLE),
    SBX_CONSTANT(PR_GET_THP_DISABLE),
    SBX_CONSTANT(PR_CAP_AMBIENT),
    SBX_CONSTANT(PR_CAP_AMBIENT_IS_SET),
    SBX_CONSTANT(PR_CAP_AMBIENT_CLEAR_ALL),
    SBX_CONSTANT(PR_GET_SPECULATION_CTRL),
    SBX_CONSTANT(PR_SVE_GET_VL),
    SBX_CONSTANT(PR_SET_VMA),
    // flock
    SBX_CONSTANT(LOCK_UN),
    // clone
    SBX_CONSTANT(CLONE_FILES),
    SBX_CONSTANT(CLONE_THREAD),
    SBX_CONSTANT(CLONE_NEWNS),
    SBX_CONSTANT(CLONE_NEWCGROUP),
    SBX_CONSTANT(CLONE_NEWUTS),
    SBX_CONSTANT(CLONE_NEWIPC),
    SBX_CONSTANT(CLONE_NEWUSER),
    SBX_CONSTANT(CLONE_NEWPID),
    SBX_CONSTANT(CLONE_NEWNET),
    // socket
    SBX_CONSTANT(AF_UNIX),
    SBX_CONSTANT(AF_INET),
    SBX_CONSTANT(AF_INET6),
    SBX_CONSTANT(SOCK_STREAM),
    SBX_CONSTANT(SOCK_DGRAM),
    SBX_CONSTANT(SOCK_SEQPACKET),
    SBX_CONSTANT(IPPROTO_IP),
    SBX_CONSTANT(IPPROTO_TCP),
    SBX_CONSTANT(IPPROTO_UDP),
    // setrlimit, prlimit64: all that exist but RLIMIT_CORE
    SBX_CONSTANT(RLIMIT_CPU),
    SBX_CONSTANT(RLIMIT_FSIZE),
    SBX_CONSTANT(RLIMIT_DATA),
    SBX_CONSTANT(RLIMIT_STACK),
    SBX_CONSTANT(RLIMIT_RSS),
    SBX_CONSTANT(RLIMIT_NPROC),
    SBX_CONSTANT(RLIMIT_NOFILE),
    SBX_CONSTANT(RLIMIT_MEMLOCK),
    SBX_CONSTANT(RLIMIT_AS),
    SBX_CONSTANT(RLIMIT_LOCKS),
    SBX_CONSTANT(RLIMIT_SIGPENDING),
    SBX_CONSTANT(RLIMIT_MSGQUEUE),
    SBX_CONSTANT(RLIMIT_NICE),
    SBX_CONSTANT(RLIMIT_RTPRIO),
    SBX_CONSTANT(RLIMIT_RTTIME),
    // setpriority, ioprio_set
    SBX_CONSTANT(PRIO_PROCESS),
    SBX_CONSTANT(IOPRIO_WHO_PROCESS),
    // mknod
    SBX_CONSTANT(S_IFMT),
    SBX_CONSTANT(S_IFREG),
    SBX_CONSTANT(S_IFIFO),
    SBX_CONSTANT(S_IFSOCK),
};

constexpr int kLastErrno = 133;  // EHWPOISON

}  // namespace

std::optional<std::uint64_t> constant_value(std::string_view name) {
  for (const Constant& constant : kConstants) {
    if (constant.name == name) return constant.value;
  }
  return std::nullopt;
}

std::optional<std::uint16_t> errno_value(std::string_view name) {
  if (name == "SUCCESS") return std::uint16_t{0};
  for (int number = 1; number <= kLastErrno; ++number) {
    const char* known = ::strerrorname_np(number);
    if (known != nullptr && name == known) return static_cast<std::uint16_t>(number);
  }
  return std::nullopt;
}

}  // namespace sbx::policy
