// orphans double|sibling|silent N SECONDS: N short children that become pid 1's to reap: orphaned
// by a double fork, born as pid 1's own (CLONE_PARENT), or the same without a signal at their end.
// Waits while there is no room for more; gives up after so many seconds without a birth. Prints how
// many there were.
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

long now() {
  timespec time{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

// The exit signal is given to the flags' low byte. Copies no memory: the child ends at once, on its
// parent's stack, while that waits.
long start_sibling(unsigned long exit_signal) {
  const unsigned long flags = CLONE_PARENT | CLONE_VM | CLONE_VFORK | exit_signal;
#if defined(__x86_64__)
  // By hand: after a vfork'ed child has returned from a function, its parent's frame is gone.
  long result;
  __asm__ volatile(
      "xor %%esi, %%esi\n\t"
      "xor %%edx, %%edx\n\t"
      "xor %%r10d, %%r10d\n\t"
      "xor %%r8d, %%r8d\n\t"
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%edi, %%edi\n\t"
      "mov %[exit], %%eax\n\t"
      "syscall\n"
      "1:"
      : "=a"(result)
      : "a"(SYS_clone), "D"(flags), [exit] "i"(SYS_exit)
      : "rcx", "r11", "rsi", "rdx", "r10", "r8", "memory");
  return result;
#else
  const long result =
      ::syscall(SYS_clone, flags & ~static_cast<unsigned long>(CLONE_VM), 0, 0, 0, 0);
  if (result == 0) ::_exit(0);
  return result;
#endif
}

long start_orphan() {
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(0);
    ::_exit(grandchild < 0 ? 1 : 0);
  }
  if (child < 0) return child;
  int status = 0;
  (void)::waitpid(child, &status, 0);
  return status == 0 ? child : -1;
}

long start(const char* kind) {
  if (std::strcmp(kind, "double") == 0) return start_orphan();
  return start_sibling(std::strcmp(kind, "silent") == 0 ? 0 : SIGCHLD);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int wanted = std::atoi(argv[2]);
  const long patience = std::atoi(argv[3]);
  int made = 0;
  for (long last = now(); made < wanted && now() - last <= patience;) {
    if (start(argv[1]) < 0) {
      (void)::sched_yield();
      continue;
    }
    ++made;
    last = now();
  }
  (void)std::printf("%d\n", made);
  return 0;
}
