// Every way out that a program could think of.
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

constexpr int kPatienceMilliseconds = 2000;  // for an answer that a dead end never sends

struct Peer {
  sockaddr_storage address{};
  socklen_t size = 0;
};

// "192.0.2.1", "192.0.2.1 8080" or "::1 53"; the port is 53 when there is none.
Peer parse_peer(const char* argument) {
  Peer peer;
  char host[64] = {};
  unsigned port = 53;
  if (std::sscanf(argument, "%63s %u", host, &port) < 1) ::abort();
  auto* const four = reinterpret_cast<sockaddr_in*>(&peer.address);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&peer.address);
  if (::inet_pton(AF_INET, host, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<std::uint16_t>(port));
    peer.size = sizeof *four;
  } else if (::inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<std::uint16_t>(port));
    peer.size = sizeof *six;
  } else {
    ::abort();
  }
  return peer;
}

const sockaddr* address_of(const Peer& peer) {
  return reinterpret_cast<const sockaddr*>(&peer.address);
}

// Needs a route, sends nothing.
void act_udp(const char* argument, Answer& answer) {
  const Peer peer = parse_peer(argument);
  const int fd = ::socket(peer.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return note(answer, fd);
  note(answer, ::connect(fd, address_of(peer), peer.size));
}

// Connects, and waits for whatever comes of it.
void act_tcp(const char* argument, Answer& answer) {
  const Peer peer = parse_peer(argument);
  const int fd = ::socket(peer.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return note(answer, fd);
  note(answer, ::connect(fd, address_of(peer), peer.size));
  if (answer.error != EINPROGRESS) return;
  pollfd entry{fd, POLLOUT, 0};
  if (::poll(&entry, 1, kPatienceMilliseconds) != 1) {
    answer.error = ETIMEDOUT;
    return;
  }
  socklen_t size = sizeof answer.error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &answer.error, &size) != 0) note(answer, -1);
}

// A question for "example.com", as a resolver sends it, without any library.
void act_dns(const char* argument, Answer& answer) {
  static const unsigned char kQuestion[] = {0x12, 0x34, 1,   0,   0,   1,   0,   0,   0,   0,
                                            0,    0,    7,   'e', 'x', 'a', 'm', 'p', 'l', 'e',
                                            3,    'c',  'o', 'm', 0,   0,   1,   0,   1};
  const Peer peer = parse_peer(argument);
  const int fd = ::socket(peer.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return note(answer, fd);
  note(answer, ::sendto(fd, kQuestion, sizeof kQuestion, 0, address_of(peer), peer.size));
}

void connect_unix(const char* path, bool abstract, Answer& answer) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return note(answer, fd);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  char* const place = address.sun_path + (abstract ? 1 : 0);
  const std::size_t length = ::strnlen(path, sizeof address.sun_path - 2);
  std::memcpy(place, path, length);
  const auto size = static_cast<socklen_t>(place + length + (abstract ? 0 : 1) -
                                           reinterpret_cast<char*>(&address));
  note(answer, ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size));
}

// `argument`: the path of a socket that listens outside. Also where an old root that was not
// detached would show it.
void act_unix_socket(const char* argument, Answer& answer) {
  char below[sizeof sockaddr_un{}.sun_path] = "/code";
  std::strncat(below, argument, sizeof below - std::strlen("/code") - 1);
  connect_unix(argument, false, answer);
  if (answer.error != 0 && ::access(below, F_OK) == 0) connect_unix(below, false, answer);
}

// `argument`: the name of an abstract socket that listens outside.
void act_abstract_socket(const char* argument, Answer& answer) {
  connect_unix(argument, true, answer);
}

// The first nameserver of resolv.conf.
void look_nameserver(const char*, Answer& answer) {
  const bool old_root = ::access("/code/etc/resolv.conf", F_OK) == 0;
  FILE* const file = std::fopen(old_root ? "/code/etc/resolv.conf" : "/etc/resolv.conf", "re");
  if (file == nullptr) return note(answer, -1);
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, " nameserver %127s", answer.value) == 1) break;
  }
  (void)std::fclose(file);
  if (answer.value[0] == '\0') (void)std::snprintf(answer.value, sizeof answer.value, "none");
}

// The interfaces that are up: "none", or the first.
void look_interfaces(const char*, Answer& answer) {
  FILE* const file = std::fopen("/proc/net/dev", "re");
  if (file == nullptr) return note(answer, -1);
  char line[512];
  char found[IFNAMSIZ + 1] = {};
  int packets = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    char name[IFNAMSIZ + 1] = {};
    unsigned long bytes = 0;
    unsigned long received = 0;
    if (std::sscanf(line, " %15[^:]: %lu %lu", name, &bytes, &received) != 3) continue;
    if (received > 0) ++packets;
    if (std::strcmp(name, "lo") != 0) (void)std::strcpy(found, name);
  }
  (void)std::fclose(file);
  if (found[0] != '\0') {
    (void)std::snprintf(answer.value, sizeof answer.value, "%s", found);
  } else {
    (void)std::snprintf(answer.value, sizeof answer.value,
                        packets == 0 ? "only a silent lo" : "lo");
  }
}

}  // namespace

const Act kNetwork[] = {
    {"udp", act_udp},
    {"tcp", act_tcp},
    {"dns", act_dns},
    {"unix_socket", act_unix_socket},
    {"abstract_socket", act_abstract_socket},
    {"nameserver", look_nameserver},
    {"interfaces", look_interfaces},
    {nullptr, nullptr},
};

}  // namespace sbx::probe
