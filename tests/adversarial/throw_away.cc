#include "tests/adversarial/throw_away.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "runtime/base/sys.h"
#include "runtime/cgroup/driver.h"
#include "runtime/cli/selftest_control.h"

namespace sbx::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxOutput = 1 << 20;
constexpr std::uint8_t kOneByte[] = {0};

// v2: the leaf's cgroup.procs; v1: the groups' tasks files.
bool join_group(const cgroup::CgroupRun& group) {
  for (const int fd : group.join_fds()) {
    if (::write(fd, "0", 1) != 1) return false;
  }
  if (group.payload_leaf_fd() < 0) return true;
  const UniqueFd procs(::openat(group.payload_leaf_fd(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
  return procs && ::write(procs.get(), "0", 1) == 1;
}

// Said through `trouble`, which an exec closes: the parent knows whether the program was reached.
[[noreturn]] void give_up(int trouble, const char* step) {
  ::dprintf(trouble, "%s: %m", step);
  ::_exit(1);
}

// Pid 1 of the new namespace: its end takes everything along.
[[noreturn]] void become_program(int trouble, int program, const std::vector<std::string>& words) {
  // A process group of its own: what it signals as a group is not us.
  if (::setsid() < 0) give_up(trouble, "setsid");
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    give_up(trouble, "private mounts");
  }
  if (::mount("proc", "/proc", "proc", 0, nullptr) != 0) give_up(trouble, "mount proc");
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  (void)::fexecve(program, argv.data(), environ);
  give_up(trouble, "execute");
}

// Ends as the program did. Without a core: the caller's pattern is none of ours.
[[noreturn]] void end_as(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit no_core{1, 1};
    (void)::setrlimit(RLIMIT_CORE, &no_core);
    (void)::signal(WTERMSIG(status), SIG_DFL);
    (void)::raise(WTERMSIG(status));
  }
  ::_exit(WEXITSTATUS(status));
}

// The descriptors that the child uses: where its program is, where that writes, where it says what
// went wrong, and where its pidfd is handed over.
struct ChildEnds {
  int program = -1, output = -1, trouble = -1, handle = -1;
};

[[noreturn]] void run_child(const cgroup::CgroupRun& group, const ChildEnds& ends,
                            const std::vector<std::string>& words) {
  const int trouble = ends.trouble;
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (::dup2(null.get(), 0) < 0 || ::dup2(ends.output, 1) < 0 || ::dup2(ends.output, 2) < 0) {
    give_up(trouble, "dup2");
  }
  (void)::signal(SIGPIPE, SIG_DFL);
  if (!join_group(group)) give_up(trouble, "join the group");
  if (const auto act = cli::enter_throw_away(); !act.ok()) {
    give_up(trouble, act.failed_step.c_str());
  }
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::unshare(CLONE_NEWPID) != 0) give_up(trouble, "new pid namespace");
  const pid_t pid = ::fork();
  if (pid < 0) give_up(trouble, "fork");
  if (pid == 0) become_program(trouble, ends.program, words);
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd || !sys::send_packet(ends.handle, kOneByte, std::array{pidfd.get()})) {
    (void)::kill(pid, SIGKILL);
    give_up(trouble, "hand over a pidfd");
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  end_as(status);
}

// Reads until the end of file, at most until the deadline; false when that came first.
bool read_until(int fd, Clock::time_point deadline, std::string& text) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) == 0) return false;
    char buffer[4096];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) return true;
    if (text.size() < kMaxOutput) text.append(buffer, static_cast<std::size_t>(got));
  }
}

// None when the child did not get so far.
UniqueFd received_pidfd(int handle) {
  std::uint8_t byte[1];
  auto packet = sys::receive_packet(handle, byte);
  if (!packet || !*packet || (*packet)->fds.empty()) return UniqueFd();
  return std::move((*packet)->fds[0]);
}

Error not_run(std::string why) {
  Error error;
  error.code = ErrorCode::kHost;
  error.stage = "control";
  error.operation = "throw away";
  error.detail = std::move(why);
  return error;
}

}  // namespace

Result<ThrownAway> run_thrown_away(const OwnGround& ground, const std::string& program,
                                   const std::vector<std::string>& arguments,
                                   const ThrowAwayLimits& limits) {
  cgroup::DriverOptions options;
  options.parent = ground.config().cgroup_parent;
  options.owner_uid = ::geteuid();
  options.owner_gid = ::getegid();
  SBX_ASSIGN(const auto driver, cgroup::choose_driver(options));
  SBX_ASSIGN(const auto group, driver->create("control-" + std::to_string(::getpid()),
                                              {limits.memory, 0, limits.pids}));
  SBX_ASSIGN(const UniqueFd executable, sys::open(program, O_RDONLY));
  SBX_ASSIGN(auto output, sys::pipe());
  SBX_ASSIGN(auto trouble, sys::pipe());
  SBX_ASSIGN(auto handle, sys::seqpacket_pair());
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), program);
  const auto deadline = Clock::now() + limits.patience;
  const pid_t pid = ::fork();
  if (pid < 0) return sys_error("fork");
  if (pid == 0) {
    run_child(*group,
              {executable.get(), output.second.get(), trouble.second.get(), handle.second.get()},
              words);
  }
  output.second.reset();
  trouble.second.reset();
  handle.second.reset();
  const UniqueFd program_pidfd = received_pidfd(handle.first.get());
  ThrownAway ended;
  std::string why;
  ended.timed_out = !read_until(output.first.get(), deadline, ended.out);
  if (ended.timed_out && program_pidfd) {
    SBX_TRY(sys::pidfd_signal(program_pidfd.get(), SIGKILL));
  }
  (void)read_until(trouble.first.get(), Clock::now() + std::chrono::seconds(20), why);
  while (::waitpid(pid, &ended.status, 0) < 0 && errno == EINTR) {
  }
  SBX_TRY(group->remove(std::chrono::seconds(20)));
  if (!why.empty()) return unexpected(not_run(why));
  return ended;
}

}  // namespace sbx::test
