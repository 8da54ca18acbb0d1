// charge KIND MEBIBYTES: stores that much where memory can hide, or as much as the kernel allows,
// prints "KIND N KiB" with what it stored, and ends. Kinds: anonymous, tmp, output, work, shm (the
// mounts), memfd, posix (shm_open), sysv (shmget), mqueue, messages (msgget), pipes, sockets,
// ancillary (descriptors in flight), headers (of IPv6), attributes (access control lists).
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t kMiB = 1U << 20;
constexpr std::size_t kPiece = 4096;
char piece[kMiB];

// Each stores until `wanted` bytes are there or the kernel says no; returns what it stored.
using Store = std::size_t (*)(std::size_t wanted);

std::size_t touch(void* memory, std::size_t size) {
  if (memory == MAP_FAILED || memory == nullptr) return 0;
  std::memset(memory, 1, size);
  return size;
}

std::size_t map(int fd, int flags, std::size_t size) {
  return touch(::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0), size);
}

std::size_t store_anonymous(std::size_t wanted) {
  return map(-1, MAP_PRIVATE | MAP_ANONYMOUS, wanted);
}

std::size_t fill(int fd, std::size_t wanted) {
  std::size_t stored = 0;
  while (stored < wanted) {
    const ssize_t put = ::write(fd, piece, kMiB);
    if (put <= 0) break;
    stored += static_cast<std::size_t>(put);
  }
  return stored;
}

// In files of 16 MiB, below any limit on one.
std::size_t store_files(const char* directory, std::size_t wanted) {
  constexpr std::size_t kFile = 16 * kMiB;
  std::size_t stored = 0;
  for (int i = 0; stored < wanted; ++i) {
    char path[64];
    (void)std::snprintf(path, sizeof path, "%s/file%d", directory, i);
    const int fd = ::open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) break;
    const std::size_t part = wanted - stored < kFile ? wanted - stored : kFile;
    const std::size_t got = fill(fd, part);
    stored += got;
    if (got < part) break;
  }
  return stored;
}

std::size_t store_tmp(std::size_t wanted) {
  return store_files("/tmp", wanted);
}
std::size_t store_output(std::size_t wanted) {
  return store_files("/output", wanted);
}
std::size_t store_work(std::size_t wanted) {
  return store_files("/work", wanted);
}
std::size_t store_shm(std::size_t wanted) {
  return store_files("/dev/shm", wanted);
}

std::size_t store_in(int fd, std::size_t wanted) {
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(wanted)) != 0) return 0;
  // Writing tells "full" by an errno; touching a mapping would by a signal.
  return fill(fd, wanted);
}

std::size_t store_memfd(std::size_t wanted) {
  return store_in(::memfd_create("hidden", MFD_CLOEXEC), wanted);
}

std::size_t store_posix(std::size_t wanted) {
  return store_in(::shm_open("/hidden", O_CREAT | O_RDWR, 0600), wanted);
}

std::size_t store_sysv(std::size_t wanted) {
  const int id = ::shmget(IPC_PRIVATE, wanted, IPC_CREAT | 0600);
  if (id < 0) return 0;
  void* const memory = ::shmat(id, nullptr, 0);
  if (memory == reinterpret_cast<void*>(-1)) return 0;
  return touch(memory, wanted);
}

std::size_t store_mqueue(std::size_t wanted) {
  std::size_t stored = 0;
  for (int i = 0; stored < wanted; ++i) {
    char name[32];
    (void)std::snprintf(name, sizeof name, "/hidden%d", i);
    mq_attr attributes{};
    attributes.mq_maxmsg = 10;
    attributes.mq_msgsize = 8192;
    const mqd_t queue = ::mq_open(name, O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK, 0600, &attributes);
    if (queue < 0) break;
    while (::mq_send(queue, piece, 8192, 0) == 0) stored += 8192;
  }
  return stored;
}

std::size_t store_messages(std::size_t wanted) {
  std::size_t stored = 0;
  struct {
    long type = 1;
    char text[8192] = {};
  } message;
  while (stored < wanted) {
    const int queue = ::msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    if (queue < 0) break;
    while (::msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0) {
      stored += sizeof message.text;
    }
  }
  return stored;
}

std::size_t store_pipes(std::size_t wanted) {
  std::size_t stored = 0;
  int ends[2];
  while (stored < wanted && ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    (void)::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(kMiB));
    stored += fill(ends[1], kMiB);
  }
  return stored;
}

std::size_t store_sockets(std::size_t wanted) {
  std::size_t stored = 0;
  int ends[2];
  while (stored < wanted &&
         ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0) {
    const int size = static_cast<int>(kMiB);
    (void)::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    for (ssize_t put = 0; (put = ::write(ends[0], piece, kPiece)) > 0;) {
      stored += static_cast<std::size_t>(put);
    }
  }
  return stored;
}

// Sockets inside sockets: each pair is sent through the next and closed here, so that nothing but
// the kernel holds what it carries.
std::size_t store_ancillary(std::size_t wanted) {
  std::size_t stored = 0;
  int inner[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, inner) != 0) return 0;
  while (stored < wanted) {
    int outer[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, outer) != 0) break;
    const ssize_t put = ::write(outer[0], piece, 64 * 1024);
    if (put > 0) stored += static_cast<std::size_t>(put);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof inner)] = {};
    char byte = 0;
    iovec data{&byte, 1};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof inner);
    std::memcpy(CMSG_DATA(header), inner, sizeof inner);
    const bool sent = ::sendmsg(outer[0], &message, 0) == 1;
    (void)::close(inner[0]);
    (void)::close(inner[1]);
    if (!sent) break;
    std::memcpy(inner, outer, sizeof inner);
  }
  return stored;
}

// An IPv6 extension header stays in the kernel with its socket, whatever it says.
std::size_t store_headers(std::size_t wanted) {
  constexpr int kPacketOptions = 6;  // IPV6_2292PKTOPTIONS of <linux/in6.h>
  std::size_t stored = 0;
  alignas(cmsghdr) static char header[kPiece] = {};
  reinterpret_cast<cmsghdr*>(header)->cmsg_len = sizeof header;
  reinterpret_cast<cmsghdr*>(header)->cmsg_level = 77;  // of nobody, so it is kept unread
  while (stored < wanted) {
    const int fd = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ::setsockopt(fd, IPPROTO_IPV6, kPacketOptions, header, sizeof header) != 0) break;
    stored += sizeof header;
  }
  return stored;
}

// A list of who may do what with a file, of as many entries as an attribute can be long.
std::size_t store_attributes(std::size_t wanted) {
  constexpr std::uint32_t kVersion = 2;
  constexpr std::size_t kEntries = 8190;
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  enum : std::uint16_t { kOwner = 1, kUser = 2, kGroup = 4, kMask = 0x10, kOther = 0x20 };
  constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  static struct {
    std::uint32_t version = kVersion;
    Entry entries[kEntries];
  } list;
  for (Entry& entry : list.entries) entry = {kUser, 7, ::getuid()};
  list.entries[0] = {kOwner, 7, kNobody};
  list.entries[kEntries - 3] = {kGroup, 5, kNobody};
  list.entries[kEntries - 2] = {kMask, 7, kNobody};
  list.entries[kEntries - 1] = {kOther, 5, kNobody};
  std::size_t stored = 0;
  for (int i = 0; stored < wanted; ++i) {
    char path[64];
    (void)std::snprintf(path, sizeof path, "/tmp/file%d", i);
    const int fd = ::open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) break;
    const bool set = ::fsetxattr(fd, "system.posix_acl_access", &list, sizeof list, 0) == 0;
    (void)::close(fd);
    if (!set) break;
    stored += sizeof list;
  }
  return stored;
}

constexpr struct {
  const char* kind;
  Store store;
} kStores[] = {
    {"anonymous", store_anonymous}, {"tmp", store_tmp},         {"output", store_output},
    {"work", store_work},           {"shm", store_shm},         {"memfd", store_memfd},
    {"posix", store_posix},         {"sysv", store_sysv},       {"mqueue", store_mqueue},
    {"messages", store_messages},   {"pipes", store_pipes},     {"sockets", store_sockets},
    {"ancillary", store_ancillary}, {"headers", store_headers}, {"attributes", store_attributes},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::memset(piece, 1, sizeof piece);
  for (const auto& entry : kStores) {
    if (std::strcmp(entry.kind, argv[1]) != 0) continue;
    const std::size_t stored = entry.store(static_cast<std::size_t>(std::atol(argv[2])) * kMiB);
    (void)std::printf("%s %zu KiB\n", entry.kind, stored / 1024);
    return 0;
  }
  return 2;
}
