#include "runtime/cgroup/scope_client.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <ctime>

#include <fmt/core.h>

#include "runtime/base/scope_exit.h"
#include "runtime/base/sys.h"
#include "runtime/cgroup/v2_base.h"

namespace sbx::cgroup {
namespace {

constexpr std::size_t kMaxReply = 16384;

Error no_scope(const std::string& why, int sys_errno = 0) {
  return host_lacks("sbx-scope", sys_errno, why, "");
}

// No search in PATH: root may be the caller, and PATH is not his.
std::string find_program() {
  std::array<char, PATH_MAX> buffer;
  const ssize_t length = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (length <= 0) return {};
  const std::string self(buffer.data(), static_cast<std::size_t>(length));
  const std::string directory = self.substr(0, self.rfind('/'));
  for (const char* place : {"/sbx-scope", "/../libexec/sbx/sbx-scope"}) {
    const std::string path = directory + place;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

// Unique also among scopes that outlived a process of the same pid.
std::string new_unit_name() {
  timespec now{};
  (void)::clock_gettime(CLOCK_BOOTTIME, &now);  // fails for a bad clock only
  return fmt::format("{}{}-{:x}{:08x}{}", kScopePrefix, ::getpid(), now.tv_sec, now.tv_nsec,
                     kScopeSuffix);
}

// sbx-scope's standard output and error share the pipe: one line, the path or the reason.
Result<pid_t> spawn(const std::string& program, ScopeWish wish, int output) {
  const std::string pid = std::to_string(::getpid());
  const std::string unit = new_unit_name();
  const char* manager = ::geteuid() == 0 ? "--system" : "--user";
  const char* last = wish == ScopeWish::kNew ? "--new" : nullptr;
  const std::array<const char*, 8> argv{program.c_str(), manager,      "--pid", pid.c_str(),
                                        "--unit",        unit.c_str(), last,    nullptr};
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return no_scope("out of memory");
  const ScopeExit destroy([&] { (void)::posix_spawn_file_actions_destroy(&actions); });
  // Both can fail for want of memory only; then posix_spawn has no output to give and we say so.
  (void)::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  (void)::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr,
                                  const_cast<char* const*>(argv.data()), environ);
  if (error != 0) return no_scope(program + " cannot be started", error);
  return child;
}

}  // namespace

bool systemd_is_running() {
  return ::access("/run/systemd/system", F_OK) == 0;
}

Result<std::string> get_scope(const std::string& program, ScopeWish wish) {
  const std::string path = program.empty() ? find_program() : program;
  if (path.empty()) return no_scope("the program sbx-scope is not installed beside this one");
  SBX_ASSIGN(auto pipe, sys::pipe());
  SBX_ASSIGN(const pid_t child, spawn(path, wish, pipe.second.get()));
  pipe.second.reset();
  auto reply = sys::read_all(pipe.first.get(), kMaxReply);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!reply) return no_scope("its answer could not be read", reply.error().sys_errno);
  while (!reply->empty() && reply->back() == '\n') reply->pop_back();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !reply->starts_with('/')) {
    return no_scope(reply->empty() ? "it failed without a word" : *reply);
  }
  return reply;
}

}  // namespace sbx::cgroup
