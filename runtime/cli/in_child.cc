#include "runtime/cli/in_child.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/sys.h"

namespace sbx::cli {
namespace {

constexpr unsigned kChildSeconds = 10;
constexpr uid_t kNobodysId = 60452;  // beyond what distributions give away

// An Act on its way through a pipe.
struct Record {
  int sys_errno = 0;
  char step[60] = {};
};

void send(int fd, const Act& act) {
  Record record;
  record.sys_errno = act.sys_errno;
  const std::size_t length = std::min(act.failed_step.size(), sizeof record.step - 1);
  std::memcpy(record.step, act.failed_step.data(), length);
  [[maybe_unused]] const ssize_t sent =
      ::write(fd, &record, sizeof record);  // a parent that is gone needs no answer
}

Act receive(int fd) {
  Record record;
  ssize_t got = 0;
  do {
    got = ::read(fd, &record, sizeof record);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof record)) return {"the probe's process died", ECHILD};
  return {record.step, record.sys_errno};
}

int wait_status(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

void begin_child() {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)::signal(SIGALRM, SIG_DFL);
  (void)::alarm(kChildSeconds);
}

}  // namespace

Act failed(const char* step) {
  return {step, errno};
}

bool write_proc(const char* path, const std::string& text) {
  return sys::write_file(path, text).has_value();
}

Act enter_user_namespace(unsigned inside) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWUSER) != 0) return failed("unshare user");
  if (!write_proc("/proc/self/setgroups", "deny")) return failed("write setgroups");
  if (!write_proc("/proc/self/uid_map", fmt::format("{} {} 1", inside, uid))) {
    return failed("write uid_map");
  }
  if (!write_proc("/proc/self/gid_map", fmt::format("{} {} 1", inside, gid))) {
    return failed("write gid_map");
  }
  return {};
}

// The map is written by a process left outside: inside it takes rights over the caller's namespace.
Act enter_user_namespace_as_nobody() {
  if (::geteuid() != 0) return enter_user_namespace(0);
  if (::setgroups(0, nullptr) != 0) return failed("drop groups");
  auto ready = sys::pipe();
  if (!ready) return {"pipe", ready.error().sys_errno};
  const std::string own = fmt::format("/proc/{}", ::getpid());
  const std::string map = fmt::format("0 {} 1", kNobodysId);
  const pid_t writer = ::fork();
  if (writer < 0) return failed("fork");
  if (writer == 0) {
    begin_child();
    ready->second.reset();
    char byte = 0;
    const bool unshared = ::read(ready->first.get(), &byte, 1) == 1;
    const bool written = unshared && write_proc((own + "/gid_map").c_str(), map) &&
                         write_proc((own + "/uid_map").c_str(), map);
    ::_exit(written ? 0 : 1);
  }
  Act act;
  if (::unshare(CLONE_NEWUSER) != 0) act = failed("unshare user");
  if (act.ok() && ::write(ready->second.get(), "", 1) != 1) act = failed("write to a pipe");
  ready->second.reset();
  if (wait_status(writer) != 0 && act.ok()) act = {"write the id maps", EPERM};
  if (!act.ok()) return act;
  if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0) return failed("take the id");
  return ::prctl(PR_SET_DUMPABLE, 1) == 0 ? Act{} : failed("prctl dumpable");
}

Act in_child(const std::function<Act()>& act) {
  auto pipe = sys::pipe();
  if (!pipe) return {"pipe", pipe.error().sys_errno};
  const pid_t pid = ::fork();
  if (pid < 0) return failed("fork");
  if (pid == 0) {
    begin_child();
    send(pipe->second.get(), act());
    ::_exit(0);
  }
  pipe->second.reset();
  Act answer = receive(pipe->first.get());
  (void)wait_status(pid);
  return answer;
}

WaitingChild::WaitingChild(const std::function<Act()>& act) {
  auto answer = sys::pipe();
  auto hold = sys::pipe();
  if (!answer || !hold) {
    act_ = failed("pipe");
    return;
  }
  pid_ = ::fork();
  if (pid_ < 0) {
    act_ = failed("fork");
    return;
  }
  if (pid_ == 0) {
    begin_child();
    hold->second.reset();
    send(answer->second.get(), act());
    char byte = 0;
    [[maybe_unused]] const ssize_t got =
        ::read(hold->first.get(), &byte, 1);  // EOF when the parent lets go or dies
    ::_exit(0);
  }
  answer->second.reset();
  hold_ = std::move(hold->second);
  act_ = receive(answer->first.get());
}

WaitingChild::~WaitingChild() {
  hold_.reset();
  if (pid_ > 0) (void)wait_status(pid_);
}

int run_quietly(const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (const int error = ::posix_spawn_file_actions_init(&actions); error != 0) return -error;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    (void)::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, words[0], &actions, nullptr, words.data(), environ);
  (void)::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -error;
  const int status = wait_status(pid);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : -ECHILD;
}

}  // namespace sbx::cli
