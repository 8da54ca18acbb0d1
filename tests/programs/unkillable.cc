// Ignores what can be ignored, says "up", stops itself, its group and pid 1 as far as it may, and
// waits. Only what cannot be refused ends it.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

int main() {
  for (int signal = 1; signal < NSIG; ++signal) (void)std::signal(signal, SIG_IGN);
  (void)::prctl(PR_SET_PDEATHSIG, 0);
  (void)std::puts("up");
  (void)std::fflush(stdout);
  if (::fork() == 0) {
    (void)::kill(0, SIGSTOP);
  }
  (void)::kill(1, SIGSTOP);
  (void)::kill(1, SIGKILL);
  (void)::kill(::getpid(), SIGSTOP);
  for (;;) (void)::pause();
}
