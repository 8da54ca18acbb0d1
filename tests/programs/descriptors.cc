// What a program can reach through descriptors it was started with (CVE-2024-21626): prints a line
// for each number above 2 that is open, and for each way in that works; says what 0 to 2 are.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace {

constexpr int kLast = 1023;

const char* kind_of(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return "closed";
  if (S_ISFIFO(info.st_mode)) return "pipe";
  if (S_ISDIR(info.st_mode)) return "directory";
  if (S_ISREG(info.st_mode)) return "file";
  if (S_ISSOCK(info.st_mode)) return "socket";
  if (!S_ISCHR(info.st_mode)) return "other";
  return ::isatty(fd) == 1 ? "terminal" : "device";
}

// Each act starts from "/", wherever the one before it came to.
void try_number(int fd) {
  char path[32];
  (void)std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (::fcntl(fd, F_GETFD) >= 0) (void)std::printf("%d open\n", fd);
  if (::chdir(path) == 0) (void)std::printf("%d chdir\n", fd);
  (void)!::chdir("/");
  if (::fchdir(fd) == 0) (void)std::printf("%d fchdir\n", fd);
  (void)!::chdir("/");
  const int through = ::openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (through < 0) return;
  (void)std::printf("%d openat\n", fd);
  (void)::close(through);
}

}  // namespace

int main() {
  (void)std::printf("%s %s %s\n", kind_of(0), kind_of(1), kind_of(2));
  for (int fd = 3; fd <= kLast; ++fd) try_number(fd);
  (void)std::printf("tried\n");
  return 0;
}
