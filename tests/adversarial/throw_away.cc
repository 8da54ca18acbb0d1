#include "tests/adversarial/throw_away.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/sys.h"
#include "runtime/cgroup/driver.h"

namespace sbx::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uid_t kNobodysId = 60452;
constexpr std::size_t kMaxOutput = 1 << 20;

bool become_nobody() {
  if (::geteuid() != 0) return true;
  return ::setgroups(0, nullptr) == 0 && ::setresgid(kNobodysId, kNobodysId, kNobodysId) == 0 &&
         ::setresuid(kNobodysId, kNobodysId, kNobodysId) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0;
}

bool enter_namespaces() {
  const std::string uid = "0 " + std::to_string(::geteuid()) + " 1";
  const std::string gid = "0 " + std::to_string(::getegid()) + " 1";
  constexpr int kNew =
      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  return ::unshare(kNew) == 0 && sys::write_file("/proc/self/setgroups", "deny").has_value() &&
         sys::write_file("/proc/self/uid_map", uid).has_value() &&
         sys::write_file("/proc/self/gid_map", gid).has_value();
}

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

[[noreturn]] void run_child(const cgroup::CgroupRun& group, int trouble, int program, int output,
                            const std::vector<std::string>& words) {
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (::dup2(null.get(), 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0) {
    give_up(trouble, "dup2");
  }
  (void)::signal(SIGPIPE, SIG_DFL);
  if (!join_group(group)) give_up(trouble, "join the group");
  if (!become_nobody()) give_up(trouble, "become nobody");
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of uid clears it
  if (!enter_namespaces()) give_up(trouble, "enter namespaces");
  const pid_t pid = ::fork();
  if (pid < 0) give_up(trouble, "fork");
  if (pid == 0) become_program(trouble, program, words);
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
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), program);
  const auto deadline = Clock::now() + limits.patience;
  const pid_t pid = ::fork();
  if (pid < 0) return sys_error("fork");
  if (pid == 0) {
    run_child(*group, trouble.second.get(), executable.get(), output.second.get(), words);
  }
  output.second.reset();
  trouble.second.reset();
  ThrownAway ended;
  std::string why;
  ended.timed_out = !read_until(output.first.get(), deadline, ended.out);
  if (ended.timed_out) (void)::kill(pid, SIGKILL);
  (void)read_until(trouble.first.get(), Clock::now() + std::chrono::seconds(5), why);
  while (::waitpid(pid, &ended.status, 0) < 0 && errno == EINTR) {
  }
  SBX_TRY(group->remove(std::chrono::seconds(5)));
  if (!why.empty()) return unexpected(not_run(why));
  return ended;
}

}  // namespace sbx::test
