#include "tests/unit/cgroup/process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "runtime/base/sys.h"

namespace sbx::cgroup::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

pid_t start_child(int leaf, const std::vector<int>& join_fds, const std::function<void()>& body) {
  auto joined = sys::pipe();
  if (!joined) return -1;
  const pid_t pid = leaf >= 0 ? clone_into(leaf) : ::fork();
  if (pid != 0) {
    char byte = 0;
    joined->second.reset();
    if (pid > 0) (void)!::read(joined->first.get(), &byte, 1);  // EOF: the child's status tells
    return pid;
  }
  for (const int fd : join_fds) {
    if (::write(fd, "0", 1) != 1) ::_exit(101);
  }
  if (::write(joined->second.get(), "x", 1) != 1) ::_exit(101);
  joined->second.reset();
  body();
  ::_exit(0);
}

int remaining(steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

}  // namespace

pid_t clone_into(int leaf) {
  clone_args args{};
  args.flags = CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<__u64>(leaf);
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}

Process::Process(pid_t pid, int error) : pid_(pid), start_error_(pid < 0 ? error : 0) {
  if (pid > 0) pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

Process Process::start(const std::function<void()>& body) {
  const pid_t pid = start_child(-1, {}, body);
  return {pid, errno};
}

Process Process::start_in(const CgroupRun& run, const std::function<void()>& body) {
  const pid_t pid = start_child(run.payload_leaf_fd(), run.join_fds(), body);
  return {pid, errno};
}

Process::~Process() {
  if (!pidfd_) return;
  kill();
  (void)wait(milliseconds(10'000));
}

void Process::kill() const {
  (void)::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, 0, 0);
}

std::optional<int> Process::wait(milliseconds patience) {
  pollfd ended{pidfd_.get(), POLLIN, 0};
  if (::poll(&ended, 1, static_cast<int>(patience.count())) != 1) return std::nullopt;
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  pidfd_.reset();
  return status;
}

void touch_memory(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) ::_exit(102);
  auto* bytes_of = static_cast<volatile char*>(memory);
  for (std::size_t i = 0; i < bytes; i += 4096) bytes_of[i] = 1;
}

void spin() {
  for (;;) asm volatile("");
}

void sleep_forever() {
  for (;;) ::pause();
}

int fork_until_refused(int ceiling) {
  for (int made = 0; made < ceiling; ++made) {
    const pid_t pid = ::fork();
    if (pid < 0) return made;
    if (pid == 0) sleep_forever();
  }
  return ceiling;
}

int count_forks_until_refused(int ceiling) {
  std::vector<pid_t> children;
  while (static_cast<int>(children.size()) < ceiling) {
    const pid_t pid = ::fork();
    if (pid < 0) break;
    if (pid == 0) sleep_forever();
    children.push_back(pid);
  }
  for (const pid_t child : children) (void)::kill(child, SIGKILL);
  return static_cast<int>(children.size());
}

bool wait_for_oom(CgroupRun& run, milliseconds patience) {
  const auto deadline = steady_clock::now() + patience;
  std::vector<pollfd> waits;
  for (const EventFd& event : run.event_fds()) waits.push_back({event.fd, event.events, 0});
  while (remaining(deadline) > 0) {
    (void)::poll(waits.data(), waits.size(), remaining(deadline));
    if (run.oom_happened()) return true;
  }
  return false;
}

}  // namespace sbx::cgroup::test
