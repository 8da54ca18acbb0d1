// Leaves daemons behind, each in a session of its own, deaf to every signal it may
// ignore and without a death signal; prints "left" and exits 0. They hold the pipes open.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace {

void become_deaf() {
  for (int signal = 1; signal < NSIG; ++signal) (void)std::signal(signal, SIG_IGN);
  (void)::prctl(PR_SET_PDEATHSIG, 0);
  (void)::setsid();
}

}  // namespace

int main() {
  constexpr int kCount = 8;
  for (int i = 0; i < kCount; ++i) {
    if (::fork() != 0) continue;
    // Twice, as daemons do: the second has lost its parent and its session's leader.
    become_deaf();
    if (::fork() != 0) ::_exit(0);
    become_deaf();
    for (;;) (void)::pause();
  }
  (void)std::puts("left");
  return 0;
}
