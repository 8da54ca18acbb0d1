// Programs that take too much: memory, room, descriptors, time to print. What they came to is told
// by the sandbox; their own answer only says that they could do all of it.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

constexpr std::size_t kMiB = 1U << 20;
char piece[kMiB];

// errno of what stopped it, or 0.
int touch(void* memory, std::size_t size) {
  if (memory == MAP_FAILED) return errno;
  std::memset(memory, 1, size);
  return 0;
}

int take(std::size_t size) {
  return touch(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
               size);
}

int fill(int fd, std::size_t mebibytes) {
  if (fd < 0) return errno;
  std::memset(piece, 1, sizeof piece);
  std::size_t left = mebibytes * kMiB;
  while (left > 0) {
    const ssize_t put = ::write(fd, piece, left < kMiB ? left : kMiB);
    if (put <= 0) return put < 0 ? errno : EIO;
    left -= static_cast<std::size_t>(put);
  }
  return 0;
}

// Each takes its part and keeps it until all have theirs.
int take_in_children(std::size_t mebibytes) {
  constexpr int kChildren = 4;
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return errno;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) return errno;
    if (pid > 0) continue;
    if (take(mebibytes * kMiB / kChildren) == 0 && ::write(ready[1], "x", 1) == 1) (void)::pause();
    ::_exit(1);
  }
  (void)::close(ready[1]);
  char byte = 0;
  for (int i = 0; i < kChildren; ++i) {
    if (::read(ready[0], &byte, 1) != 1) return ECHILD;
  }
  return 0;
}

int take_segment(std::size_t size) {
  const int id = ::shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
  if (id < 0) return errno;
  void* const memory = ::shmat(id, nullptr, 0);
  (void)::shmctl(id, IPC_RMID, nullptr);
  return touch(memory, size);
}

// In files of 16 MiB, below any limit on one.
int take_files(const char* directory, std::size_t mebibytes) {
  constexpr std::size_t kFile = 16;
  for (int i = 0; mebibytes > 0; ++i) {
    char path[64];
    (void)std::snprintf(path, sizeof path, "%s/part%d", directory, i);
    const std::size_t part = mebibytes < kFile ? mebibytes : kFile;
    const int fd = ::open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (const int error = fill(fd, part); error != 0) return error;
    (void)::close(fd);
    mebibytes -= part;
  }
  return 0;
}

// `argument`: where, and how many MiB: "anonymous 64", "children 64", "memfd 64", "segment 64", or
// a directory.
void act_take(const char* argument, Answer& answer) {
  char where[32] = {};
  unsigned long mebibytes = 0;
  if (std::sscanf(argument, "%31s %lu", where, &mebibytes) != 2) {
    answer.error = EINVAL;
  } else if (std::strcmp(where, "anonymous") == 0) {
    answer.error = take(mebibytes * kMiB);
  } else if (std::strcmp(where, "children") == 0) {
    answer.error = take_in_children(mebibytes);
  } else if (std::strcmp(where, "memfd") == 0) {
    answer.error = fill(::memfd_create("hidden", MFD_CLOEXEC), mebibytes);
  } else if (std::strcmp(where, "segment") == 0) {
    answer.error = take_segment(mebibytes * kMiB);
  } else {
    answer.error = take_files(where, mebibytes);
  }
}

// `argument`: so many empty files in /tmp.
void act_many_files(const char* argument, Answer& answer) {
  const int count = std::atoi(argument);
  for (int i = 0; i < count && answer.error == 0; ++i) {
    char path[64];
    (void)std::snprintf(path, sizeof path, "/tmp/empty%d", i);
    note(answer, ::mknod(path, S_IFREG | 0600, 0));
  }
}

// `argument`: one file in /tmp of so many MiB.
void act_big_file(const char* argument, Answer& answer) {
  const int fd = ::open("/tmp/big", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  answer.error = fill(fd, static_cast<std::size_t>(std::atoi(argument)));
}

// `argument`: so many descriptors.
void act_descriptors_held(const char* argument, Answer& answer) {
  const int count = std::atoi(argument);
  for (int i = 0; i < count && answer.error == 0; ++i) {
    note(answer, ::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
}

// `argument`: so many record locks, none beside another. On many files: a file's locks are all
// looked through for each new one.
void act_record_locks(const char* argument, Answer& answer) {
  constexpr long kFiles = 40;
  const long count = std::atol(argument);
  for (long file = 0; file < kFiles && answer.error == 0; ++file) {
    char path[64];
    (void)std::snprintf(path, sizeof path, "/tmp/locked%ld", file);
    const int fd = ::open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    note(answer, fd);
    for (long at = 0; at < count / kFiles && answer.error == 0; ++at) {
      struct flock lock{};
      lock.l_type = F_WRLCK;
      lock.l_start = 2 * at;
      lock.l_len = 1;
      note(answer, ::fcntl(fd, F_SETLK, &lock));
    }
  }
}

// `argument`: so many calls of flock by another process, which says how that ended and dies.
void act_flocks_of_child(const char* argument, Answer& answer) {
  const long count = std::atol(argument);
  const int fd = ::open("/tmp/flocked", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  note(answer, fd);
  const pid_t child = ::fork();
  if (child == 0) {
    long done = 0;
    while (done < count && ::flock(fd, LOCK_SH) == 0) ++done;
    ::_exit(done < count ? errno : 0);
  }
  int status = 0;
  note(answer, ::waitpid(child, &status, 0));
  if (answer.error == 0) answer.error = WEXITSTATUS(status);
}

// `argument`: so many KiB on standard output, in one line; 0: for ever. Says nothing else.
void act_flood(const char* argument, Answer&) {
  const long most = std::atol(argument);
  std::memset(piece, 'x', sizeof piece);
  for (long written = 0; most == 0 || written < most; ++written) {
    if (::write(STDOUT_FILENO, piece, 1024) != 1024) ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

const Act kDeeds[] = {
    {"take", act_take},
    {"many_files", act_many_files},
    {"big_file", act_big_file},
    {"descriptors_held", act_descriptors_held},
    {"record_locks", act_record_locks},
    {"flocks_of_child", act_flocks_of_child},
    {"flood", act_flood},
    {nullptr, nullptr},
};

}  // namespace sbx::probe
