// Programs that do not want to end. Each that lingers first says "up" on standard output, and ends
// by itself some time, so that a run whose limit is longer shows that it was the limit.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

constexpr int kLongSeconds = 20;
constexpr long kPause = 2;  // milliseconds

void say_up() {
  (void)!::write(STDOUT_FILENO, "up\n", 3);  // who does not hear it says so
}

void wait_milliseconds(long milliseconds) {
  timespec left{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  while (::nanosleep(&left, &left) != 0) {
  }
}

void become_deaf() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGCHLD) (void)::signal(signal, SIG_IGN);
  }
  (void)::prctl(PR_SET_PDEATHSIG, 0);
  (void)::setsid();
}

// `argument`: for so many milliseconds, whatever signals come.
void act_linger(const char* argument, Answer&) {
  become_deaf();
  say_up();
  wait_milliseconds(std::atol(argument));
}

// `argument`: stopped for so many milliseconds, its whole group.
void act_stop(const char* argument, Answer& answer) {
  const pid_t self = ::getpid();
  int apart[2];
  if (::pipe2(apart, O_CLOEXEC) != 0) return note(answer, -1);
  const pid_t waker = ::fork();
  if (waker < 0) return note(answer, waker);
  if (waker == 0) {
    (void)::setsid();
    (void)!::write(apart[1], "x", 1);
    wait_milliseconds(std::atol(argument));
    (void)::kill(self, SIGCONT);
    ::_exit(0);
  }
  char byte = 0;
  if (::read(apart[0], &byte, 1) != 1) return note(answer, -1);
  say_up();
  (void)::kill(0, SIGSTOP);
  (void)::waitpid(waker, nullptr, 0);
}

// `argument`: so many milliseconds in vfork(2), where only a fatal signal reaches a process.
void act_park(const char* argument, Answer& answer) {
  static long milliseconds;
  milliseconds = std::atol(argument);
  say_up();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const pid_t pid = ::vfork();  // NOLINT: to wait in it is what is wanted
#pragma GCC diagnostic pop
  if (pid == 0) {
    wait_milliseconds(milliseconds);
    ::_exit(0);
  }
  note(answer, pid);
  if (pid > 0) (void)::waitpid(pid, nullptr, 0);
}

// Four daemons: forked twice, each in a session of its own, deaf, and with this one's descriptors.
bool leave_daemons() {
  constexpr int kCount = 4;
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return false;
  for (int i = 0; i < kCount; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) return false;
    if (pid > 0) {
      (void)::waitpid(pid, nullptr, 0);
      continue;
    }
    become_deaf();
    if (::fork() != 0) ::_exit(0);
    become_deaf();
    (void)!::write(ready[1], "x", 1);
    wait_milliseconds(kLongSeconds * 1000);
    ::_exit(0);
  }
  char byte = 0;
  (void)::close(ready[1]);
  for (int i = 0; i < kCount; ++i) {
    if (::read(ready[0], &byte, 1) != 1) return false;
  }
  say_up();
  wait_milliseconds(200);  // to be seen
  return true;
}

void act_daemons(const char*, Answer& answer) {
  if (!leave_daemons()) answer.error = ECHILD;
}

// `argument`: "with children" leaves daemons first; "not" does not do it.
void act_die(const char* argument, Answer& answer) {
  if (asks_for(argument, "children") && !leave_daemons()) answer.error = ECHILD;
  if (answer.error == 0 && !asks_for(argument, "not")) (void)::kill(::getpid(), SIGKILL);
}

// Pid 1 of a namespace where nobody kills what is left: whether anything was.
[[noreturn]] void watch_what_is_left(void (*act)(const char*, Answer&), const char* argument) {
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, STDOUT_FILENO) < 0) ::_exit(2);
  const pid_t main_program = ::fork();
  if (main_program < 0) ::_exit(2);
  if (main_program == 0) {
    Answer ignored;
    act(argument, ignored);
    ::_exit(ignored.error == 0 ? 0 : 2);
  }
  for (bool ended = false; !ended;) {
    const pid_t pid = ::waitpid(-1, nullptr, 0);
    if (pid < 0) ::_exit(2);
    ended = pid == main_program;
  }
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
  }
  ::_exit(pid == 0 ? 0 : 1);
}

// `argument`: "daemons" or "die with children", in a pid namespace that is the caller's own to
// make.
void act_left_behind(const char* argument, Answer& answer) {
  if (::unshare(CLONE_NEWPID) != 0) return note(answer, -1);
  const pid_t pid = ::fork();
  if (pid < 0) return note(answer, pid);
  if (pid == 0) watch_what_is_left(asks_for(argument, "die") ? act_die : act_daemons, argument);
  int status = 0;
  (void)::waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 2) answer.error = ECHILD;
  (void)std::snprintf(answer.value, sizeof answer.value,
                      status == 0 ? "they live on" : "nothing was left");
}

// Each process forks, and so do its children; refused, it tries again. Not more than 128, where
// nothing refuses.
void act_fork_bomb(const char*, Answer&) {
  constexpr int kGenerations = 7;
  say_up();
  for (int generation = 0; generation < kGenerations;) {
    if (::fork() >= 0) ++generation;
  }
  wait_milliseconds(kLongSeconds * 1000);
  ::_exit(0);
}

// `argument`: so many children at once.
void act_crowd(const char* argument, Answer& answer) {
  const int count = std::atoi(argument);
  for (int i = 0; i < count && answer.error == 0; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      wait_milliseconds(kLongSeconds * 1000);
      ::_exit(0);
    }
    note(answer, pid);
  }
}

// A grandchild that nobody of its family waits for. False with errno when there was no room.
bool make_orphan(bool stays) {
  const pid_t pid = ::fork();
  if (pid < 0) return false;
  if (pid == 0) {
    const pid_t orphan = ::fork();
    if (orphan == 0 && stays) wait_milliseconds(kLongSeconds * 1000);
    ::_exit(orphan < 0 ? 1 : 0);
  }
  int status = 0;
  (void)::waitpid(pid, &status, 0);
  errno = EAGAIN;
  return status == 0;
}

// `argument`: so many orphans, which end at once, and room for others comes when they are reaped;
// with "stay" they do not, and there is nothing to wait for.
void act_orphans(const char* argument, Answer& answer) {
  const int count = std::atoi(argument);
  const bool stay = asks_for(argument, "stay");
  long patience = stay ? 0 : 10'000;
  for (int made = 0; made < count && answer.error == 0;) {
    if (make_orphan(stay)) {
      ++made;
    } else if (patience <= 0) {
      answer.error = EAGAIN;
    } else {
      patience -= kPause;
      wait_milliseconds(kPause);
    }
  }
}

void burn(long milliseconds) {
  timespec used{};
  do {
    (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  } while (used.tv_sec * 1000 + used.tv_nsec / 1'000'000 < milliseconds);
}

// `argument`: so many milliseconds of CPU time; "600 4": in each of four processes.
void act_burn(const char* argument, Answer& answer) {
  long milliseconds = 0;
  int processes = 1;
  (void)std::sscanf(argument, "%ld %d", &milliseconds, &processes);
  for (int i = 1; i < processes; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) return note(answer, pid);
    if (pid == 0) {
      burn(milliseconds);
      ::_exit(0);
    }
  }
  burn(milliseconds);
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

}  // namespace

const Act kLingering[] = {
    {"linger", act_linger},       {"stop", act_stop},   {"park", act_park},
    {"daemons", act_daemons},     {"die", act_die},     {"left_behind", act_left_behind},
    {"fork_bomb", act_fork_bomb}, {"crowd", act_crowd}, {"orphans", act_orphans},
    {"burn", act_burn},           {nullptr, nullptr},
};

}  // namespace sbx::probe
