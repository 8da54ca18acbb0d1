#include "http/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "runtime/base/sys.h"

namespace sbx::http {
namespace {

constexpr int kFirstSystemdFd = 3;  // SD_LISTEN_FDS_START

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.front() != '/') {
    return invalid("the socket's path is not absolute: " + path);
  }
  if (path.size() >= sizeof address.sun_path) {
    return invalid("the socket's path is longer than " +
                   std::to_string(sizeof address.sun_path - 1) + " bytes: " + path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Error in_use(const std::string& path) {
  return host_lacks("bind", EADDRINUSE, path + " is another daemon's",
                    "stop the other one, or choose another path with --socket");
}

// Held as long as the socket file is ours. The file may have been removed, by an owner that ended,
// between our open and our lock: then it is another file's turn.
Result<UniqueFd> take_lock(const std::string& path) {
  const std::string name = path + ".lock";
  for (;;) {
    auto opened = sys::open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (!opened) {
      return host_lacks("open", opened.error().sys_errno, name,
                        "remove it, or choose another path with --socket");
    }
    UniqueFd lock = *std::move(opened);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return in_use(path);
      return sys_error("flock", name);
    }
    struct stat held{};
    struct stat named{};
    if (::fstat(lock.get(), &held) != 0) return sys_error("fstat", name);
    if (::lstat(name.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
        held.st_dev == named.st_dev) {
      return lock;
    }
  }
}

// A socket that refuses connections has no listener. Whoever holds the lock is the only one to ask.
Result<void> remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return {};
    return sys_error("lstat", path);
  }
  if (!S_ISSOCK(found.st_mode)) {
    return host_lacks("bind", EEXIST, path + " is no socket",
                      "remove it, or choose another path with --socket");
  }
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return sys_error("socket");
  if (::connect(probe.get(), generic(address), sizeof address) == 0 || errno == EAGAIN) {
    return in_use(path);  // EAGAIN: alive, with a full backlog
  }
  if (errno != ECONNREFUSED && errno != ENOENT) return sys_error("connect", path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return sys_error("unlink", path);
  return {};
}

// SECURITY: nobody can connect before listen(2), and until then the file's mode is 0600 (bind(2)
// takes it from the socket's own). The directory is ours, so that the name stays the file we bound.
Result<void> bind_shut(int socket, const std::string& path, const sockaddr_un& address) {
  if (::fchmod(socket, 0600) != 0) return sys_error("fchmod");
  if (::bind(socket, generic(address), sizeof address) != 0) return sys_error("bind", path);
  return {};
}

Result<void> listen_with_mode(int socket, const UnixSocketOptions& options) {
  if (options.group && ::fchownat(AT_FDCWD, options.path.c_str(), static_cast<uid_t>(-1),
                                  *options.group, AT_SYMLINK_NOFOLLOW) != 0) {
    return sys_error("chown", options.path);
  }
  if (::chmod(options.path.c_str(), options.mode) != 0) return sys_error("chmod", options.path);
  if (::listen(socket, kListenBacklog) != 0) return sys_error("listen", options.path);
  return {};
}

Result<int> socket_option(int socket, int option, const char* name) {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(socket, SOL_SOCKET, option, &value, &size) != 0) {
    return sys_error("getsockopt", name);
  }
  return value;
}

Error no_listener(const std::string& detail) {
  return host_lacks("adopt", 0, detail,
                    "pass a listening stream socket (systemd: ListenStream= and Accept=no)");
}

std::string unix_name(int socket) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      size <= offsetof(sockaddr_un, sun_path)) {
    return "unix socket";
  }
  return {address.sun_path, ::strnlen(address.sun_path, size - offsetof(sockaddr_un, sun_path))};
}

struct InternetAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<InternetAddress> internet_address(const std::string& address, std::uint16_t port) {
  InternetAddress parsed;
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    parsed.size = sizeof v4;
    std::memcpy(&parsed.storage, &v4, sizeof v4);
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    parsed.size = sizeof v6;
    std::memcpy(&parsed.storage, &v6, sizeof v6);
  } else {
    return invalid("not a numeric address: " + address, "write it like 127.0.0.1 or ::1");
  }
  return parsed;
}

// Both families keep the port at the same place.
std::uint16_t bound_port(int socket) {
  InternetAddress address;
  address.size = sizeof address.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    return 0;
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &address.storage, sizeof v4);
  return ntohs(v4.sin_port);
}

std::optional<long> environment_number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  long value = 0;
  const char* end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

// How many systemd passed to this very process.
int passed_descriptors() {
  const auto pid = environment_number("LISTEN_PID");
  const auto count = environment_number("LISTEN_FDS");
  if (!pid || !count || *pid != ::getpid() || *count < 0) return 0;
  return static_cast<int>(std::min(*count, long{INT_MAX - kFirstSystemdFd}));
}

}  // namespace

Result<Listener> Listener::unix_socket(const UnixSocketOptions& options) {
  SBX_ASSIGN(const sockaddr_un address, unix_address(options.path));
  Listener made;
  made.path_ = made.name_ = options.path;  // which names the lock, whose owner it is from here on
  SBX_ASSIGN(made.lock_, take_lock(options.path));
  SBX_TRY(remove_stale(options.path, address));
  made.fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.fd_) return sys_error("socket");
  made.is_unix_ = true;
  SBX_TRY(bind_shut(made.fd_.get(), options.path, address));
  struct stat bound{};
  if (::lstat(options.path.c_str(), &bound) != 0) return sys_error("lstat", options.path);
  made.device_ = bound.st_dev;
  made.inode_ = bound.st_ino;
  SBX_TRY(listen_with_mode(made.fd_.get(), options));
  return made;
}

Result<Listener> Listener::adopt(UniqueFd fd) {
  SBX_ASSIGN(const int listening, socket_option(fd.get(), SO_ACCEPTCONN, "SO_ACCEPTCONN"));
  SBX_ASSIGN(const int type, socket_option(fd.get(), SO_TYPE, "SO_TYPE"));
  SBX_ASSIGN(const int domain, socket_option(fd.get(), SO_DOMAIN, "SO_DOMAIN"));
  if (listening == 0) return no_listener("the socket does not listen");
  if (type != SOCK_STREAM) return no_listener("the socket is no stream socket");
  if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6) {
    return no_listener("the socket is neither Unix nor TCP");
  }
  if (::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) return sys_error("fcntl(F_SETFD)");
  SBX_TRY(sys::set_nonblocking(fd.get(), true));
  Listener adopted;
  adopted.is_unix_ = domain == AF_UNIX;
  if (adopted.is_unix_) {
    adopted.name_ = unix_name(fd.get());
  } else {
    adopted.port_ = bound_port(fd.get());
    adopted.name_ = "port " + std::to_string(adopted.port_);
  }
  adopted.fd_ = std::move(fd);
  return adopted;
}

Result<Listener> Listener::tcp(const std::string& address, std::uint16_t port) {
  SBX_ASSIGN(const InternetAddress parsed, internet_address(address, port));
  const std::string shown = address + " port " + std::to_string(port);
  UniqueFd fd(::socket(parsed.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return sys_error("socket");
  const int on = 1;
  // Else a restart within a minute finds the port taken by connections in TIME_WAIT.
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
    return sys_error("setsockopt", "SO_REUSEADDR");
  }
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&parsed.storage), parsed.size) != 0) {
    return sys_error("bind", shown);
  }
  if (::listen(fd.get(), kListenBacklog) != 0) return sys_error("listen", shown);
  Listener made;
  made.port_ = bound_port(fd.get());
  made.fd_ = std::move(fd);
  made.name_ = address + " port " + std::to_string(made.port_);
  return made;
}

Listener::~Listener() {
  if (!lock_) return;
  struct stat found{};
  const bool ours = inode_ != 0 && ::lstat(path_.c_str(), &found) == 0 && found.st_ino == inode_ &&
                    found.st_dev == device_;
  // What cannot be removed is replaced by the next start.
  if (ours) (void)::unlink(path_.c_str());
  (void)::unlink((path_ + ".lock").c_str());
}

Result<void> close_inherited_descriptors() {
  const auto first = static_cast<unsigned>(kFirstSystemdFd + passed_descriptors());
  if (::syscall(SYS_close_range, first, ~0U, 0U) != 0) return sys_error("close_range");
  return {};
}

Result<std::vector<UniqueFd>> systemd_descriptors() {
  const int count = passed_descriptors();
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) {
    if (::unsetenv(name) != 0) return sys_error("unsetenv", name);
  }
  std::vector<UniqueFd> passed;
  for (int fd = kFirstSystemdFd; fd < kFirstSystemdFd + count; ++fd) {
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
      return sys_error("fcntl(F_SETFD)", "descriptor " + std::to_string(fd) + " of LISTEN_FDS");
    }
    passed.emplace_back(fd);
  }
  return passed;
}

}  // namespace sbx::http
