// Leaves what another run could find, or looks for it: "leave", "find" or "both", and which:
// "names" or "keys". "leave" says "left" and stays until its standard input ends; the others say
// what was found.
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

constexpr key_t kKey = 0x74726163;

bool leave_file(const char* path) {
  return ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) >= 0;
}
bool find_file(const char* path) {
  return ::access(path, F_OK) == 0;
}

bool leave_segment(const char*) {
  return ::shmget(kKey, 4096, IPC_CREAT | 0666) >= 0;
}
bool find_segment(const char*) {
  return ::shmget(kKey, 0, 0) >= 0;
}
bool leave_semaphore(const char*) {
  return ::semget(kKey, 1, IPC_CREAT | 0666) >= 0;
}
bool find_semaphore(const char*) {
  return ::semget(kKey, 0, 0) >= 0;
}
bool leave_queue(const char*) {
  return ::msgget(kKey, IPC_CREAT | 0666) >= 0;
}
bool find_queue(const char*) {
  return ::msgget(kKey, 0) >= 0;
}
bool leave_posix_queue(const char*) {
  return ::mq_open("/trace", O_RDWR | O_CREAT, 0666, nullptr) >= 0;
}
bool find_posix_queue(const char*) {
  return ::mq_open("/trace", O_RDWR) >= 0;
}

sockaddr_un abstract_name(socklen_t* size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, "trace", 5);
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 6);
  return address;
}
bool leave_abstract_socket(const char*) {
  socklen_t size = 0;
  const sockaddr_un address = abstract_name(&size);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 && ::listen(fd, 8) == 0;
}
bool find_abstract_socket(const char*) {
  socklen_t size = 0;
  const sockaddr_un address = abstract_name(&size);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0;
}

// Keyrings by their special numbers (keyctl(2)): -3 the session's, -4 the user's, -5 the user's
// session.
long keyring_number(const char* name) {
  if (std::strcmp(name, "session") == 0) return -3;
  return std::strcmp(name, "user") == 0 ? -4 : -5;
}
bool leave_key(const char* keyring) {
  return ::syscall(SYS_add_key, "user", "trace", "x", 1, keyring_number(keyring)) >= 0;
}
bool find_key(const char* keyring) {
  constexpr int kSearch = 10;
  return ::syscall(SYS_keyctl, kSearch, keyring_number(keyring), "user", "trace", 0) >= 0;
}

struct Trace {
  const char* name;
  const char* where;
  bool (*leave)(const char* where);
  bool (*find)(const char* where);
};

constexpr Trace kNames[] = {
    {"/tmp", "/tmp/trace", leave_file, find_file},
    {"/dev/shm", "/dev/shm/trace", leave_file, find_file},
    {"/work", "/work/trace", leave_file, find_file},
    {"/output", "/output/trace", leave_file, find_file},
    {"segment", "", leave_segment, find_segment},
    {"semaphore", "", leave_semaphore, find_semaphore},
    {"queue", "", leave_queue, find_queue},
    {"posix-queue", "", leave_posix_queue, find_posix_queue},
    {"abstract-socket", "", leave_abstract_socket, find_abstract_socket},
};
constexpr Trace kKeys[] = {
    {"session", "session", leave_key, find_key},
    {"user", "user", leave_key, find_key},
    {"user-session", "user-session", leave_key, find_key},
};

template <std::size_t kCount>
int run(const Trace (&traces)[kCount], const char* what) {
  const bool leaves = std::strcmp(what, "find") != 0;
  for (const Trace& trace : traces) {
    if (leaves && !trace.leave(trace.where)) {
      std::printf("cannot leave %s: %s\n", trace.name, std::strerror(errno));
      return 1;
    }
  }
  if (std::strcmp(what, "leave") == 0) {
    (void)std::puts("left");
    (void)std::fflush(stdout);
    for (char byte = 0; ::read(STDIN_FILENO, &byte, 1) > 0;) {
    }
    return 0;
  }
  bool none = true;
  for (const Trace& trace : traces) {
    if (!trace.find(trace.where)) continue;
    std::printf("%s%s", none ? "" : " ", trace.name);
    none = false;
  }
  (void)std::puts(none ? "none" : "");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (std::strcmp(argv[2], "names") == 0) return run(kNames, argv[1]);
  return run(kKeys, argv[1]);
}
