#include "runtime/cgroup/members.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>

#include "runtime/base/sys.h"

namespace sbx::cgroup {
namespace {

// Bounds the descriptors in use; the rest is killed in the next round.
constexpr std::size_t kBatch = 64;

// Pids outside the reader's pid namespace read as 0 and cannot be killed from here.
Result<std::set<pid_t>> members_of(const GroupDir& group) {
  SBX_ASSIGN(const std::string text, group.read("cgroup.procs"));
  std::set<pid_t> pids;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const auto pid = parse_number(line);
    if (pid && *pid != 0) pids.insert(static_cast<pid_t>(*pid));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return pids;
}

std::map<pid_t, UniqueFd> open_batch(const std::set<pid_t>& pids) {
  std::map<pid_t, UniqueFd> opened;
  for (const pid_t pid : pids) {
    if (opened.size() == kBatch) break;
    const long fd = ::syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0) opened.emplace(pid, UniqueFd(static_cast<int>(fd)));  // ESRCH: gone already
  }
  return opened;
}

}  // namespace

Result<void> kill_members(const GroupDir& group, Deadline deadline) {
  for (;;) {
    SBX_ASSIGN(const auto before, members_of(group));
    if (before.empty()) return {};
    const auto opened = open_batch(before);
    SBX_ASSIGN(const auto after, members_of(group));
    for (const auto& [pid, pidfd] : opened) {
      if (after.contains(pid)) SBX_TRY(sys::pidfd_signal(pidfd.get(), SIGKILL));
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      errno = EBUSY;
      return sys_error("kill", group.path() + " still has processes");
    }
    (void)::poll(nullptr, 0, 1);
  }
}

}  // namespace sbx::cgroup
