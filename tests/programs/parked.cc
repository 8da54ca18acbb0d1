// parked wait|vfork|ptrace|pipe: leaves processes in states that are hard to end, prints "up" and
// does not end. wait: one process, deaf to signals. vfork: the parent waits in the kernel for a
// child that stops itself. ptrace: a traced child stands still, its tracer stops itself. pipe:
// prints "up" and ends, while a grandchild in a session of its own keeps all three streams.
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

namespace {

void say_up() {
  constexpr char kUp[] = "up\n";
  (void)!::write(STDOUT_FILENO, kUp, sizeof kUp - 1);
}

void park() {
  say_up();
  for (;;) (void)::pause();
}

void park_in_vfork() {
  if (::vfork() == 0) {
    say_up();
    for (;;) (void)::raise(SIGSTOP);
  }
}

void park_in_ptrace() {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    (void)::raise(SIGTRAP);
    for (;;) (void)::pause();
  }
  int status = 0;
  (void)::waitpid(child, &status, WUNTRACED);
  if (WIFSTOPPED(status)) say_up();
  for (;;) (void)::raise(SIGSTOP);
}

int keep_the_pipes() {
  if (::fork() == 0) {
    (void)::setsid();
    if (::fork() == 0) {
      for (;;) (void)::pause();
    }
    ::_exit(0);
  }
  (void)::wait(nullptr);
  say_up();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGTRAP && signal != SIGCHLD) (void)std::signal(signal, SIG_IGN);
  }
  if (std::strcmp(how, "wait") == 0) park();
  if (std::strcmp(how, "vfork") == 0) park_in_vfork();
  if (std::strcmp(how, "ptrace") == 0) park_in_ptrace();
  if (std::strcmp(how, "pipe") == 0) return keep_the_pipes();
  return 2;
}
