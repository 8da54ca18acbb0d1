#include "runtime/base/service.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "runtime/base/sys.h"

namespace sbx {

bool prepare_process() {
  (void)::signal(SIGXFSZ, SIG_IGN);
  (void)::signal(SIGCHLD, SIG_DFL);
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    const int mode = fd == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", mode | O_NOCTTY) != fd) return false;  // not CLOEXEC: a standard stream
  }
  return true;
}

Result<UniqueFd> block_ending_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  if (::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return sys_error("pthread_sigmask");
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return sys_error("signalfd");
  return fd;
}

std::uint64_t resident_bytes() {
  const auto text = sys::read_file("/proc/self/statm", 4096);
  if (!text) return 0;
  const std::string_view pages = std::string_view(*text).substr(text->find(' ') + 1);
  std::uint64_t count = 0;
  (void)std::from_chars(pages.data(), pages.data() + pages.size(),
                        count);  // 0 when it is no number
  return count * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t open_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/fd"), ::closedir);
  std::uint64_t count = 0;
  while (directory && ::readdir(directory.get()) != nullptr) ++count;
  return count < 3 ? 0 : count - 3;  // ".", ".." and the one that lists
}

double cpu_seconds() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

// sd_notify(3): one datagram to the socket that systemd names.
void notify_systemd(std::string_view state) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name == nullptr || (*name != '/' && *name != '@')) return;
  const std::size_t length = std::strlen(name);
  if (length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, name, length);
  if (*name == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  // Nobody to tell is no failure.
  (void)::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace sbx
