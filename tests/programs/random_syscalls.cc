// random_syscalls SEED SECONDS [all]: calls system calls by random numbers with random arguments,
// in one child after the other, so that it goes on after each death, and says at the end, in one
// line of JSON, how many it made and how they were answered.
//
// Without `all`, namespace flags are taken out of clone(2) and signals reach no process but the
// caller, so that a run lasts; what would block or end the child is left out in either case.
//
// Runs inside a sandbox alone: bare, it would change the machine. It looks for the filter first and
// exits 3 without one.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kCallsPerBatch = 2000;
constexpr long kHighestNumber = 480;  // a little beyond the last that kernels know
constexpr unsigned kBatchSeconds = 1;
constexpr int kNamespaceFlags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

enum Answer { kSucceeded, kRefused, kUnknown, kBadAddress, kInvalid, kBadFile, kOther, kAnswers };
constexpr const char* kAnswerNames[] = {"succeeded", "refused",  "unknown", "bad_address",
                                        "invalid",   "bad_file", "other"};

// Shared with the children, which may die at any call.
struct Account {
  std::uint64_t answers[kAnswers];
  std::uint64_t calls;
  std::uint8_t seen[kHighestNumber + 1];
};
Account* account;

std::uint64_t state;

// SplitMix64 (Steele, Lea and Flood): any seed will do.
std::uint64_t next_random() {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t below(std::uint64_t bound) {
  return next_random() % bound;
}

alignas(4096) char scratch[64 * 1024];

const char* const kPaths[] = {"/",
                              "/tmp",
                              "/tmp/x",
                              "/work/x",
                              "/output/x",
                              "/dev/null",
                              "/dev/zero",
                              "/dev/random",
                              "/dev/shm/x",
                              "/proc/self/mem",
                              "/proc/1",
                              "/proc/self/exe",
                              "/etc/passwd",
                              "/proc/self/fd/0",
                              "/proc/sys/kernel/hostname",
                              "..",
                              "",
                              "/proc/self",
                              "/proc/self/ns/net",
                              "/input"};

// Memory that a call may read or write: small numbers, zeros, or noise.
long any_buffer() {
  char* const at = scratch + below(sizeof scratch - 4096);
  switch (below(3)) {
    case 0:
      std::memset(at, 0, 256);
      break;
    case 1:
      for (int i = 0; i < 256; i += 8) {
        const std::uint64_t small = below(8);
        std::memcpy(at + i, &small, sizeof small);
      }
      break;
    default:
      for (int i = 0; i < 256; i += 8) {
        const std::uint64_t noise = next_random();
        std::memcpy(at + i, &noise, sizeof noise);
      }
  }
  return reinterpret_cast<long>(at);
}

long any_argument() {
  constexpr std::uint64_t kEdges[] = {0,
                                      1,
                                      2,
                                      3,
                                      7,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0x100,
                                      0xfff,
                                      0x1000,
                                      0xffff,
                                      0x10000,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x100000000,
                                      0x7fffffffffffffff,
                                      0x8000000000000000,
                                      ~std::uint64_t{0},
                                      ~std::uint64_t{0} - 99};
  switch (below(8)) {
    case 0:
    case 1:
      return static_cast<long>(kEdges[below(sizeof kEdges / sizeof *kEdges)]);
    case 2:
      return static_cast<long>(below(12));  // a descriptor
    case 3:
      return reinterpret_cast<long>(kPaths[below(sizeof kPaths / sizeof *kPaths)]);
    case 4:
      return static_cast<long>(std::uint64_t{1} << below(64));
    case 5:
      return static_cast<long>(next_random());
    default:
      return any_buffer();
  }
}

// What would end the child, hold it for ever, or leave it without its memory.
bool is_left_out(long number) {
  switch (number) {
    case SYS_exit:
    case SYS_exit_group:
    case SYS_rt_sigreturn:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_futex:
    case SYS_brk:
    case SYS_munmap:
    case SYS_mremap:
#ifdef SYS_pause
    case SYS_pause:
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
    case SYS_vfork:
#endif
      return true;
    default:
      return false;
  }
}

bool sends_signals(long number) {
  return number == SYS_kill || number == SYS_tkill || number == SYS_tgkill ||
         number == SYS_rt_sigqueueinfo || number == SYS_rt_tgsigqueueinfo;
}

void keep_to_itself(long number, long (&arguments)[6]) {
  if (number == SYS_clone) arguments[0] &= ~static_cast<long>(kNamespaceFlags);
  if (sends_signals(number)) arguments[0] = ::getpid();
}

Answer answer_of(long result) {
  if (result >= 0) return kSucceeded;
  switch (errno) {
    case EPERM:
    case EACCES:
      return kRefused;
    case ENOSYS:
      return kUnknown;
    case EFAULT:
      return kBadAddress;
    case EINVAL:
      return kInvalid;
    case EBADF:
      return kBadFile;
    default:
      return kOther;
  }
}

void one_call(bool all) {
  const long number = static_cast<long>(below(kHighestNumber + 1));
  if (is_left_out(number)) return;
  long arguments[6];
  for (long& argument : arguments) argument = any_argument();
  if (!all) keep_to_itself(number, arguments);
  // Before the call, which may not come back.
  ++account->calls;
  account->seen[number] = 1;
  const long result = ::syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                                arguments[4], arguments[5]);
  ++account->answers[answer_of(result)];
}

void limit(__rlimit_resource resource, rlim_t value) {
  const rlimit both{value, value};
  (void)::setrlimit(resource, &both);
}

// Its own session, so that a signal to group 0 stays in the batch.
[[noreturn]] void batch(std::uint64_t seed, bool all) {
  (void)::setsid();
  (void)::alarm(kBatchSeconds);
  limit(RLIMIT_AS, 96UL << 20);
  limit(RLIMIT_FSIZE, 1UL << 20);
  limit(RLIMIT_CPU, 1);
  state = seed;
  for (int i = 0; i < kCallsPerBatch; ++i) one_call(all);
  ::_exit(0);
}

double now() {
  timespec time{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

void block_signals(int how) {
  sigset_t all;
  ::sigfillset(&all);
  (void)::sigprocmask(how, &all, nullptr);
}

// Returns when a child has ended, or has had twice its time.
void wait_for_end() {
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  const timespec patience{2 * kBatchSeconds, 0};
  (void)::sigtimedwait(&child_ended, nullptr, &patience);
}

// With every child reaped: a signal that is still pending tells of one of those.
void forget_children() {
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  const timespec no_patience{0, 0};
  while (::sigtimedwait(&child_ended, nullptr, &no_patience) >= 0) {
  }
}

// A batch, and the end of whatever it started. Signals stay blocked here: no batch can end us but
// by SIGKILL.
bool run_batch(std::uint64_t seed, bool all) {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    block_signals(SIG_UNBLOCK);
    batch(seed, all);
  }
  wait_for_end();  // or not: a batch may have stopped itself
  (void)::kill(-1, SIGKILL);
  while (::waitpid(-1, nullptr, __WALL) > 0) {
  }
  forget_children();
  return true;
}

void print_account(std::uint64_t seed, int batches) {
  int distinct = 0;
  for (const std::uint8_t seen : account->seen) distinct += seen != 0 ? 1 : 0;
  char line[512];
  int size = std::snprintf(line, sizeof line,
                           "\n{\"seed\": %llu, \"batches\": %d, \"calls\": %llu, \"distinct\": %d",
                           static_cast<unsigned long long>(seed), batches,
                           static_cast<unsigned long long>(account->calls), distinct);
  for (int i = 0; i < kAnswers; ++i) {
    size +=
        std::snprintf(line + size, sizeof line - static_cast<std::size_t>(size), ", \"%s\": %llu",
                      kAnswerNames[i], static_cast<unsigned long long>(account->answers[i]));
  }
  size += std::snprintf(line + size, sizeof line - static_cast<std::size_t>(size), "}\n");
  // A batch may have made the pipe non-blocking.
  (void)::fcntl(STDOUT_FILENO, F_SETFL, 0);
  (void)!::write(STDOUT_FILENO, line, static_cast<std::size_t>(size));
}

bool is_inside() {
  return ::prctl(PR_GET_SECCOMP) == 2 && ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
         ::getuid() == 65534 && ::access("/output", W_OK) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (!is_inside()) {
    (void)std::fputs("random_syscalls runs inside a sandbox alone\n", stderr);
    return 3;
  }
  if (argc < 3) return 2;
  const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  const double until = now() + std::atof(argv[2]);
  const bool all = argc > 3 && std::strcmp(argv[3], "all") == 0;
  void* const shared =
      ::mmap(nullptr, sizeof *account, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 4;
  account = static_cast<Account*>(shared);
  (void)std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  (void)std::fflush(stdout);
  block_signals(SIG_BLOCK);
  int batches = 0;
  while (now() < until && run_batch(seed + static_cast<std::uint64_t>(batches), all)) ++batches;
  print_account(seed, batches);
  return 0;
}
