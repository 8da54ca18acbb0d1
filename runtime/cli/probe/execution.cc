// Programs run in unusual ways, which is allowed and must give no power, and what a program does to
// itself, which must still work.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

constexpr const char* kHere = "here";  // the argument of a program that was executed as asked

// What this process may do: "uid 65534 capabilities 0 no_new_privs 1 seccomp 2".
void look_power(const char*, Answer& answer) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return note(answer, -1);
  unsigned held = 0;
  for (const auto& word : data) held |= word.effective | word.permitted;
  (void)std::snprintf(answer.value, sizeof answer.value,
                      "uid %u capabilities %s no_new_privs %d seccomp %d", ::geteuid(),
                      held == 0 ? "0" : "some", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
                      ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
}

// Becomes this same program again, from a memfd that nobody has a path to.
void act_memfd_exec(const char* argument, Answer& answer) {
  if (std::strcmp(argument, kHere) == 0) return look_power("", answer);
  const int own = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const int copy = ::memfd_create("sbx-probe", MFD_CLOEXEC);
  struct stat info{};
  if (own < 0 || copy < 0 || ::fstat(own, &info) != 0) return note(answer, -1);
  for (off_t sent = 0; sent < info.st_size;) {
    if (::sendfile(copy, own, &sent, static_cast<std::size_t>(info.st_size - sent)) <= 0) {
      return note(answer, -1);
    }
  }
  const char* const argv[] = {"sbx-probe", "memfd_exec", kHere, nullptr};
  note(answer, ::syscall(SYS_execveat, copy, "", argv, environ, AT_EMPTY_PATH));
}

void act_fd_exec(const char* argument, Answer& answer) {
  if (std::strcmp(argument, kHere) == 0) return look_power("", answer);
  const int own = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (own < 0) return note(answer, own);
  char path[64];
  (void)std::snprintf(path, sizeof path, "/proc/self/fd/%d", own);
  const char* const argv[] = {"sbx-probe", "fd_exec", kHere, nullptr};
  note(answer, ::execve(path, const_cast<char* const*>(argv), environ));
}

// `argument`: a set-user-id or file-capability copy of this program.
void act_privileged_exec(const char* argument, Answer& answer) {
  if (std::strcmp(argument, kHere) == 0) return look_power("", answer);
  const char* const argv[] = {"sbx-probe", "privileged_exec", kHere, nullptr};
  note(answer, ::execve(argument, const_cast<char* const*>(argv), environ));
}

// How many of four threads ran and were joined.
void look_threads(const char*, Answer& answer) {
  int met[4] = {};
  pthread_t threads[4];
  int started = 0;
  for (; started < 4; ++started) {
    const auto run = [](void* place) -> void* {
      *static_cast<int*>(place) = 1;
      return nullptr;
    };
    if (::pthread_create(&threads[started], nullptr, run, &met[started]) != 0) break;
  }
  int joined = 0;
  for (int i = 0; i < started; ++i) {
    if (::pthread_join(threads[i], nullptr) == 0) joined += met[i];
  }
  (void)std::snprintf(answer.value, sizeof answer.value, "%d", joined);
}

// A filter of the program's own: getppid answers ENOTTY, everything else is as before.
void look_own_filter(const char*, Answer& answer) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof code / sizeof code[0], code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return note(answer, -1);
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) return note(answer, -1);
  const bool filtered = ::syscall(SYS_getppid) == -1 && errno == ENOTTY;
  const bool unhurt = ::syscall(SYS_getpid) > 0;
  (void)std::snprintf(answer.value, sizeof answer.value, "%s",
                      filtered && unhurt ? "works" : "does not work");
}

}  // namespace

const Act kExecution[] = {
    {"power", look_power},     {"memfd_exec", act_memfd_exec},
    {"fd_exec", act_fd_exec},  {"privileged_exec", act_privileged_exec},
    {"threads", look_threads}, {"own_filter", look_own_filter},
    {nullptr, nullptr},
};

}  // namespace sbx::probe
