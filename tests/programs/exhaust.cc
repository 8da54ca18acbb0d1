// exhaust KIND [DIRECTORY [MOST]]: takes as many as the kernel gives of what is not memory, prints
// "KIND N ERRNO" with how many there were and what stopped it, and ends. Kinds: files, symlinks and
// directories (made in DIRECTORY); descriptors, locked (pages), netlink (sockets), watches (inotify
// instances), timers; on files in DIRECTORY record_locks, also taken by a thread_without_leader,
// and lock_after_closing (one after all others are let go of), ofd_locks, flocks of a child,
// record_cycles and flock_cycles (each let go of at once); table_sharers (processes with our
// descriptor table); cache (MiB of the files below DIRECTORY, read).
#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

char text[4096];

// One of the kind; below 0 with errno when there is no more to be had.
using Take = long (*)(long index);

long make_file(long index) {
  char name[32];
  (void)std::snprintf(name, sizeof name, "f%ld", index);
  return ::mknod(name, S_IFREG | 0600, 0);
}

// As long as a target can be: a page each, which no sized mount counts.
long make_symlink(long index) {
  char name[32];
  (void)std::snprintf(name, sizeof name, "s%ld", index);
  return ::symlink(text, name);
}

long make_directory(long index) {
  char name[32];
  (void)std::snprintf(name, sizeof name, "d%ld", index);
  return ::mkdir(name, 0700);
}

long open_descriptor(long) {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

long lock_page(long) {
  constexpr std::size_t kKiB = 1024;
  void* const page =
      ::mmap(nullptr, 4 * kKiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return ::mlock(page, 4 * kKiB);
}

long open_netlink(long) {
  return ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

long add_watch(long) {
  return ::inotify_init1(IN_CLOEXEC);
}

long make_timer(long) {
  sigevent event{};
  event.sigev_notify = SIGEV_NONE;
  timer_t timer{};
  return ::timer_create(CLOCK_MONOTONIC, &event, &timer);
}

// On many files: a file's locks are all looked through for each new one.
constexpr long kLockedFiles = 40;
int locked_files[kLockedFiles];

long add_record_lock(long index) {
  int& file = locked_files[index % kLockedFiles];
  if (index < kLockedFiles) {
    char name[32];
    (void)std::snprintf(name, sizeof name, "locked%ld", index);
    file = ::open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  }
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_start = 2 * (index / kLockedFiles);
  lock.l_len = 1;
  return ::fcntl(file, F_SETLK, &lock);
}

// One when there is no other: all are let go of by closing, and soon there is room again.
long lock_after_closing(long) {
  long held = 0;
  while (add_record_lock(held) >= 0) ++held;
  for (const int file : locked_files) (void)::close(file);
  constexpr int kTries = 10'000;  // sbx-init looks again after 20 ms
  for (int left = kTries; left > 0; --left) {
    const long taken = add_record_lock(0);
    if (taken >= 0) return taken;
    (void)::close(locked_files[0]);
    (void)::usleep(1'000);
  }
  return -1;
}

int lock_file() {
  static const int file = ::open("locked", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  return file;
}

// What must not hide: belongs to no process.
long add_ofd_lock(long index) {
  struct flock lock{};
  lock.l_type = F_RDLCK;
  lock.l_start = 2 * index;
  lock.l_len = 1;
  return ::fcntl(lock_file(), F_OFD_SETLK, &lock);
}

// All by a child that the first process waits for. It is one lock, and for whoever counts a call
// each.
long add_flock_of_child(long index) {
  if (index == 0) {
    const pid_t child = ::fork();
    if (child > 0) {
      (void)::waitpid(child, nullptr, 0);
      ::_exit(0);
    }
  }
  return ::flock(lock_file(), LOCK_SH | LOCK_NB);
}

long lock_and_unlock(long) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_len = 1;
  if (::fcntl(lock_file(), F_SETLK, &lock) != 0) return -1;
  lock.l_type = F_UNLCK;
  return ::fcntl(lock_file(), F_SETLK, &lock);
}

long flock_and_unlock(long) {
  return ::flock(lock_file(), LOCK_EX) != 0 ? -1 : ::flock(lock_file(), LOCK_UN);
}

// Its locks would stay when it ends.
long add_table_sharer(long) {
  const long child = ::syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) ::_exit(0);
  if (child > 0) (void)::waitpid(static_cast<pid_t>(child), nullptr, 0);
  return child;
}

constexpr struct {
  const char* kind;
  Take take;
} kKinds[] = {
    {"files", make_file},
    {"symlinks", make_symlink},
    {"directories", make_directory},
    {"descriptors", open_descriptor},
    {"locked", lock_page},
    {"netlink", open_netlink},
    {"watches", add_watch},
    {"timers", make_timer},
    {"record_locks", add_record_lock},
    {"thread_without_leader", add_record_lock},
    {"lock_after_closing", lock_after_closing},
    {"ofd_locks", add_ofd_lock},
    {"flocks", add_flock_of_child},
    {"record_cycles", lock_and_unlock},
    {"flock_cycles", flock_and_unlock},
    {"table_sharers", add_table_sharer},
};

struct Work {
  const char* kind;
  Take take;
  long most;
};

void take_all(const Work& work) {
  long taken = 0;
  while (taken < work.most && work.take(taken) >= 0) ++taken;
  (void)std::printf("%s %ld %d\n", work.kind, taken, taken < work.most ? errno : 0);
}

bool leader_has_ended() {
  const std::string path = "/proc/self/task/" + std::to_string(::getpid()) + "/stat";
  std::string line(512, '\0');
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? -1 : ::read(fd, line.data(), line.size());
  if (fd >= 0) (void)::close(fd);
  line.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.substr(name_end, 3) == ") Z";
}

// The process goes on when its first thread has ended.
[[noreturn]] void take_all_without_leader(Work& work) {
  pthread_t thread{};
  const auto run = [](void* of) -> void* {
    while (!leader_has_ended()) (void)::usleep(1'000);
    take_all(*static_cast<Work*>(of));
    std::exit(0);
  };
  if (::pthread_create(&thread, nullptr, run, &work) != 0) ::_exit(3);
  for (;;) (void)::syscall(SYS_exit, 0);
}

long read_whole(int directory, const char* name) {
  const int fd = ::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return 0;
  static char buffer[1 << 20];
  long bytes = 0;
  for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;) bytes += got;
  (void)::close(fd);
  return bytes;
}

// Bytes of the regular files below.
long read_tree(int directory) {
  DIR* const stream = ::fdopendir(directory);
  if (stream == nullptr) return 0;
  long bytes = 0;
  while (const dirent* const entry = ::readdir(stream)) {
    if (entry->d_name[0] == '.') continue;
    if (entry->d_type == DT_REG) bytes += read_whole(directory, entry->d_name);
    if (entry->d_type != DT_DIR) continue;
    const int below = ::openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (below >= 0) bytes += read_tree(below);
  }
  (void)::closedir(stream);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const kind = argc > 1 ? argv[1] : "";
  if (argc > 2 && ::chdir(argv[2]) != 0) return 2;
  if (std::strcmp(kind, "cache") == 0) {
    (void)std::printf("cache %ld 0\n",
                      read_tree(::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >> 20);
    return 0;
  }
  const long most = argc > 3 ? std::atol(argv[3]) : 2'000'000;
  std::memset(text, 'x', sizeof text - 1);
  for (const auto& entry : kKinds) {
    if (std::strcmp(entry.kind, kind) != 0) continue;
    static Work work{entry.kind, entry.take, most};
    if (std::strcmp(kind, "thread_without_leader") == 0) take_all_without_leader(work);
    take_all(work);
    return 0;
  }
  return 2;
}
