// attack_init [PID [stay]]: everything that a program could do to another process by its number,
// done to PID, or to pid 1. Prints a line for each call that the kernel took, then "done"; then
// exits 7, or stays until it is killed.
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

int target = 1;

void report(const char* what, long result) {
  if (result >= 0) (void)std::printf("took %s\n", what);
}

void attack_by_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    // Last of all: a control's target should live to take the rest.
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    if (::kill(target, signal) == 0 && signal == SIGTERM) report("SIGTERM", 0);
    (void)::syscall(SYS_tkill, target, signal);
    (void)::syscall(SYS_tgkill, target, target, signal);
    siginfo_t information{};
    information.si_code = SI_QUEUE;
    (void)::syscall(SYS_rt_sigqueueinfo, target, signal, &information);
  }
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, target, 0));
  if (pidfd >= 0) (void)::syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, nullptr, 0);
}

void stop_and_kill() {
  (void)::kill(target, SIGSTOP);
  (void)::kill(target, SIGCONT);
  (void)::kill(target, SIGKILL);
}

void attack_limits() {
  for (const int resource : {RLIMIT_CPU, RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_STACK}) {
    const rlimit limit{1, 1};
    report("prlimit", ::prlimit(target, static_cast<__rlimit_resource>(resource), &limit, nullptr));
  }
}

void attack_scheduling() {
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  report("sched_setaffinity", ::sched_setaffinity(target, sizeof first, &first));
  const sched_param none{};
  report("sched_setscheduler", ::sched_setscheduler(target, SCHED_IDLE, &none));
  report("setpriority", ::setpriority(PRIO_PROCESS, static_cast<id_t>(target), 19));
  constexpr int kWhoProcess = 1;
  constexpr int kIdleClass = 3 << 13;
  report("ioprio_set", ::syscall(SYS_ioprio_set, kWhoProcess, target, kIdleClass));
}

void attack_file(const char* name, const char* text) {
  char path[64];
  (void)std::snprintf(path, sizeof path, "/proc/%d/%s", target, name);
  const int fd = ::open(path, (text != nullptr ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  if (fd < 0) return;
  if (text == nullptr || ::write(fd, text, std::strlen(text)) > 0) report(path, 0);
  (void)::close(fd);
}

void attack_files() {
  attack_file("oom_score_adj", "1000");
  attack_file("oom_adj", "15");
  attack_file("coredump_filter", "0");
  attack_file("mem", "x");
  attack_file("timens_offsets", "monotonic 1 0");
  for (const char* const name : {"environ", "maps", "mem", "exe", "root", "cwd", "fd/3"}) {
    attack_file(name, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) target = std::atoi(argv[1]);
  attack_files();
  attack_limits();
  attack_scheduling();
  attack_by_signals();
  stop_and_kill();
  (void)std::puts("done");
  (void)std::fflush(stdout);
  while (argc > 2) (void)::pause();
  return 7;
}
