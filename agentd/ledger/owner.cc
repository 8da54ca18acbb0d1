#include "agentd/ledger/owner.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>

#include "runtime/base/sys.h"

namespace agentd::ledger {
namespace {

std::string trimmed(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

sbx::Result<std::string> boot_id() {
  auto text = sbx::sys::read_file("/proc/sys/kernel/random/boot_id", 64);
  if (!text) return std::move(text).error();
  return trimmed(*std::move(text));
}

// Field 22 of /proc/PID/stat. The second field is the name in parentheses, which may hold blanks
// and parentheses: count from its last one.
sbx::Result<std::string> start_time(const std::string& pid) {
  SBX_ASSIGN(const std::string stat, sbx::sys::read_file("/proc/" + pid + "/stat", 4096));
  std::string_view rest = stat;
  rest.remove_prefix(std::min(rest.rfind(')') + 1, rest.size()));
  constexpr int kFieldsBetween = 20;  // 3 to 22, each after a blank
  for (int i = 0; i < kFieldsBetween; ++i) {
    const std::size_t blank = rest.find(' ');
    if (blank == std::string_view::npos) return sbx::invalid("/proc/" + pid + "/stat is too short");
    rest.remove_prefix(blank + 1);
  }
  return std::string(rest.substr(0, rest.find(' ')));
}

}  // namespace

sbx::Result<std::string> own_identity() {
  const std::string pid = std::to_string(::getpid());
  SBX_ASSIGN(const std::string boot, boot_id());
  SBX_ASSIGN(const std::string start, start_time(pid));
  return fmt::format("{}:{}:{}", boot, pid, start);
}

bool is_alive(const std::string& identity) {
  const std::size_t first = identity.find(':');
  const std::size_t second = identity.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return true;
  const std::string pid = identity.substr(first + 1, second - first - 1);
  if (pid.empty() || pid.find_first_not_of("0123456789") != std::string::npos) return true;
  const auto boot = boot_id();
  if (!boot) return true;
  if (*boot != identity.substr(0, first)) return false;
  const auto start = start_time(pid);
  if (!start) return start.error().sys_errno != ENOENT && start.error().sys_errno != ESRCH;
  return *start == identity.substr(second + 1);
}

}  // namespace agentd::ledger
