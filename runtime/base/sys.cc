#include "runtime/base/sys.h"

#include <linux/openat2.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "runtime/base/deadline.h"

namespace sbx::sys {
namespace {

// memfd_create(2) flags newer than Debian 12's headers (Linux 6.3).
constexpr unsigned kMfdExec = 0x0010U;
constexpr unsigned kMfdNoexecSeal = 0x0008U;

template <typename Call>
auto retry_eintr(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

// Before Linux 6.3 the exec flags are unknown (EINVAL); memfds are executable there.
int make_memfd(const char* name, bool executable) {
  const unsigned base = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = ::memfd_create(name, base | (executable ? kMfdExec : kMfdNoexecSeal));
  if (fd >= 0 || errno != EINVAL) return fd;
  return ::memfd_create(name, base);
}

}  // namespace

Result<UniqueFd> open(const std::string& path, int flags, mode_t mode) {
  return open_at(AT_FDCWD, path, flags, mode);
}

Result<UniqueFd> open_at(int directory, const std::string& path, int flags, mode_t mode) {
  const int fd =
      retry_eintr([&] { return ::openat(directory, path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) return sys_error("open", path);
  return UniqueFd(fd);
}

Result<UniqueFd> open_beneath(int directory, const std::string& path, int flags, mode_t mode,
                              std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = resolve;
  // EAGAIN: a rename raced with the walk; the kernel asks for a retry (openat2(2)).
  for (int attempt = 0; attempt < 16; ++attempt) {
    const long fd = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    if (errno != EINTR && errno != EAGAIN) break;
  }
  return sys_error("openat2", path);
}

Result<UniqueFd> open_regular(int directory, const std::string& path, int flags, mode_t mode) {
  // O_NONBLOCK: to open a FIFO would be to wait for whoever writes it.
  SBX_ASSIGN(UniqueFd fd, open_at(directory, path, flags | O_NONBLOCK | O_NOCTTY, mode));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return sys_error("fstat", path);
  if (!S_ISREG(info.st_mode)) return invalid(path + " is not a regular file");
  return fd;
}

Result<std::string> read_all(int fd, std::size_t limit) {
  std::string content;
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t got = retry_eintr([&] { return ::read(fd, chunk.data(), chunk.size()); });
    if (got < 0) return sys_error("read");
    if (got == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(got));
    if (content.size() > limit) {
      return invalid("longer than the limit of " + std::to_string(limit) + " bytes");
    }
  }
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  SBX_ASSIGN(const UniqueFd fd, open_regular(AT_FDCWD, path, O_RDONLY));
  auto content = read_all(fd.get(), limit);
  if (!content) return unexpected(std::move(content).error().with_context(path));
  return content;
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = retry_eintr([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (put < 0) return sys_error("write");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> write_file(const std::string& path, std::string_view value) {
  SBX_ASSIGN(const UniqueFd fd, open(path, O_WRONLY));
  const ssize_t put = retry_eintr([&] { return ::write(fd.get(), value.data(), value.size()); });
  if (put != static_cast<ssize_t>(value.size())) return sys_error("write", path);
  return {};
}

Result<std::pair<UniqueFd, UniqueFd>> pipe(int flags) {
  int fds[2];
  if (::pipe2(fds, flags | O_CLOEXEC) != 0) return sys_error("pipe2");
  return std::pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Result<std::pair<UniqueFd, UniqueFd>> seqpacket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return sys_error("socketpair");
  }
  return std::pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Result<UniqueFd> duplicate_above(int fd, int lowest) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, lowest);
  if (copy < 0) return sys_error("fcntl(F_DUPFD_CLOEXEC)");
  return UniqueFd(copy);
}

Result<void> set_nonblocking(int fd, bool on) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return sys_error("fcntl(F_GETFL)");
  const int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (wanted != flags && ::fcntl(fd, F_SETFL, wanted) != 0) return sys_error("fcntl(F_SETFL)");
  return {};
}

Result<UniqueFd> sealed_memfd(const char* name, std::span<const std::uint8_t> bytes,
                              bool executable) {
  UniqueFd fd(make_memfd(name, executable));
  if (!fd) {
    if (errno == EACCES) {
      return host_lacks("memfd_create", EACCES, "executable memfds are forbidden here",
                        "set sysctl vm.memfd_noexec to 0 or 1");
    }
    return sys_error("memfd_create", name);
  }
  SBX_TRY(write_all(fd.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  if (executable && ::fchmod(fd.get(), 0555) != 0) return sys_error("fchmod", name);
  const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return sys_error("fcntl(F_ADD_SEALS)", name);
  return fd;
}

Result<void> send_packet(int socket, std::span<const std::uint8_t> bytes,
                         std::span<const int> fds) {
  if (fds.size() > kMaxPacketFds) return invalid("too many descriptors for one packet");
  iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxPacketFds)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  if (retry_eintr([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); }) < 0) {
    return sys_error("sendmsg");
  }
  return {};
}

Result<std::optional<Packet>> receive_packet(int socket, std::span<std::uint8_t> buffer,
                                             int flags) {
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxPacketFds)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got =
      retry_eintr([&] { return ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC); });
  if (got < 0) {
    if (errno == EAGAIN) return std::optional<Packet>{};
    return sys_error("recvmsg");
  }
  Packet packet;
  packet.size = static_cast<std::size_t>(got);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      packet.fds.emplace_back(fd);
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    errno = EMSGSIZE;
    return sys_error("recvmsg", "packet was cut");
  }
  return std::optional<Packet>(std::move(packet));
}

Result<void> pidfd_signal(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) != 0 && errno != ESRCH) {
    return sys_error("pidfd_send_signal");
  }
  return {};
}

Result<bool> ready_in_time(int fd, short events, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  pollfd awaited{fd, events, 0};
  for (;;) {
    const int ready = ::poll(&awaited, 1, poll_timeout(deadline));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return sys_error("poll");
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
  }
}

bool has_magic(int fd, long magic) {
  struct statfs info{};
  return ::fstatfs(fd, &info) == 0 && info.f_type == static_cast<__fsword_t>(magic);
}

std::string link_target(const std::string& path) {
  std::array<char, PATH_MAX> target;  // no link holds more
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string();
}

Result<void> check_own_proc() {
  const std::string self = link_target("/proc/self");
  if (self == std::to_string(::getpid())) return {};
  return host_lacks("proc", 0,
                    self.empty() ? "/proc does not show this process: it is not mounted, or it is "
                                   "that of another pid namespace"
                                 : "/proc is that of another pid namespace",
                    "mount one of this pid namespace: mount -t proc proc /proc (unshare "
                    "--mount-proc does)");
}

bool is_full(int sys_errno) {
  return sys_errno == ENOSPC || sys_errno == EDQUOT;
}

}  // namespace sbx::sys
