// Acts that try something on files, processes or identities.
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

// One's own: joining it changes nothing, but asks for the right to.
void act_setns(const char*, Answer& answer) {
  const int fd = ::open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return note(answer, fd);
  note(answer, ::setns(fd, CLONE_NEWUTS));
}

// Without a thread: the child, if there is one, ends at once. `argument`: the kind of namespace.
void act_clone_namespace(const char* argument, Answer& answer) {
  constexpr struct {
    const char* kind;
    unsigned long flag;
  } kFlags[] = {{"user", CLONE_NEWUSER},    {"mount", CLONE_NEWNS}, {"net", CLONE_NEWNET},
                {"pid", CLONE_NEWPID},      {"ipc", CLONE_NEWIPC},  {"uts", CLONE_NEWUTS},
                {"cgroup", CLONE_NEWCGROUP}};
  unsigned long flags = SIGCHLD;
  for (const auto& entry : kFlags) {
    if (asks_for(argument, entry.kind)) flags |= entry.flag;
  }
  if (asks_for(argument, "high")) flags |= kHighBits;
  const long child = ::syscall(SYS_clone, flags, 0, 0, 0, 0);
  if (child == 0) ::_exit(0);
  note(answer, child);
  if (child > 0) (void)::waitpid(static_cast<pid_t>(child), nullptr, 0);
}

// The old i386 entry. Where the kernel has none, the instruction is a fault.
[[maybe_unused]] sigjmp_buf no_such_entry;

void act_int80(const char*, Answer& answer) {
#if defined(__x86_64__)
  (void)std::signal(SIGSEGV, [](int) { ::siglongjmp(no_such_entry, 1); });
  if (sigsetjmp(no_such_entry, 1) != 0) {
    answer.error = ENOSYS;
    return;
  }
  long result = 20;  // getpid
  __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  answer.error = result < 0 ? static_cast<int>(-result) : 0;
#else
  answer.error = ENOSYS;
#endif
}

void act_x32(const char*, Answer& answer) {
#if defined(__x86_64__)
  note(answer, ::syscall(0x40000000 | SYS_getpid));
#else
  answer.error = ENOSYS;
#endif
}

long target_pid(const char* argument) {
  return asks_for(argument, "init") ? 1 : ::getpid();
}

void act_kcmp(const char* argument, Answer& answer) {
  note(answer, ::syscall(SYS_kcmp, target_pid(argument), ::getpid(), KCMP_VM, 0, 0));
}

// Cold pages: advice that changes no byte.
void act_process_madvise(const char* argument, Answer& answer) {
  const long pidfd = ::syscall(SYS_pidfd_open, target_pid(argument), 0);
  if (pidfd < 0) return note(answer, pidfd);
  static char page[4096] __attribute__((aligned(4096)));
  const iovec range{page, sizeof page};
  note(answer, ::syscall(SYS_process_madvise, pidfd, &range, 1, MADV_COLD, 0));
}

// Pid 1's limit, set to what it is. Outside: of no such process.
void act_prlimit(const char* argument, Answer& answer) {
  const long target = asks_for(argument, "init") ? 1 : kNoSuchPid;
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  (void)::syscall(SYS_prlimit64, target, RLIMIT_CPU, nullptr, &limit);
  const unsigned long high = asks_for(argument, "high") ? kHighBits : 0;
  note(answer, ::syscall(SYS_prlimit64, static_cast<unsigned long>(target) | high, RLIMIT_CPU,
                         &limit, nullptr));
}

void act_write_file(const char* argument, Answer& answer) {
  const int fd = ::open(argument, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  note(answer, fd);
  if (fd < 0) return;
  (void)::close(fd);
  (void)::unlink(argument);
}

// Opens for writing something that exists; writes nothing.
void act_open_for_writing(const char* argument, Answer& answer) {
  note(answer, ::open(argument, O_WRONLY | O_CLOEXEC));
}

void act_open(const char* argument, Answer& answer) {
  note(answer, ::open(argument, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

// `argument`: a name in /dev. Also where a host's /dev that was not left out would show it.
void act_open_device(const char* argument, Answer& answer) {
  char path[128];
  (void)std::snprintf(path, sizeof path, "/dev/host/%s", argument);
  if (::access(path, F_OK) != 0) (void)std::snprintf(path, sizeof path, "/dev/%s", argument);
  note(answer, ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

// `argument`: a file of the host. Also where an old root that was not detached would show it.
void act_host_file(const char* argument, Answer& answer) {
  char below[512] = "/code";
  std::strncat(below, argument, sizeof below - 6);
  const bool found_below = ::access(argument, F_OK) != 0 && ::access(below, F_OK) == 0;
  note(answer, ::open(found_below ? below : argument, O_RDONLY | O_CLOEXEC));
}

// As /dev/null. `argument`: a path; "high" in front of it: a mode with high bits.
void act_mknod(const char* argument, Answer& answer) {
  const bool high = std::strncmp(argument, "high", 4) == 0;
  const char* const path = high ? argument + 4 : argument;
  const unsigned long mode = S_IFCHR | 0600UL | (high ? kHighBits : 0);
  const long made = ::syscall(SYS_mknodat, AT_FDCWD, path, mode, makedev(1, 3));
  note(answer, made);
  if (made == 0) (void)::unlink(path);
}

void act_setuid(const char*, Answer& answer) {
  note(answer, ::setresuid(0, 0, 0));
}

// `argument`: a System V key, of a queue that somebody else made.
void act_sysv_queue(const char* argument, Answer& answer) {
  note(answer, ::msgget(static_cast<key_t>(std::atoi(argument)), 0));
}

// Takes a file that is whole on the disk from memory.
void act_uncache(const char* argument, Answer& answer) {
  const int fd = ::open(argument, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return note(answer, fd);
  note(answer, ::syscall(SYS_fadvise64, fd, 0, 0, POSIX_FADV_DONTNEED));
}

}  // namespace

const Act kActs[] = {
    {"setns", act_setns},
    {"clone_namespace", act_clone_namespace},
    {"int80", act_int80},
    {"x32", act_x32},
    {"kcmp", act_kcmp},
    {"process_madvise", act_process_madvise},
    {"prlimit", act_prlimit},
    {"write_file", act_write_file},
    {"open_for_writing", act_open_for_writing},
    {"open", act_open},
    {"open_device", act_open_device},
    {"host_file", act_host_file},
    {"mknod", act_mknod},
    {"setuid", act_setuid},
    {"sysv_queue", act_sysv_queue},
    {"uncache", act_uncache},
    {nullptr, nullptr},
};

}  // namespace sbx::probe
