#include "agentd/ledger/owner.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
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

struct Facts {
  bool ended = false;
  std::string start_time;
};

// Of /proc/PID/stat: field 3, the state, 20, the number of threads, and 22. The second field is the
// name in parentheses, which may hold blanks and parentheses: count from its last one.
sbx::Result<Facts> facts_of(const std::string& pid) {
  SBX_ASSIGN(const std::string stat, sbx::sys::read_file("/proc/" + pid + "/stat", 4096));
  std::string_view rest = stat;
  rest.remove_prefix(std::min(rest.rfind(')') + 1, rest.size()));
  constexpr std::size_t kFirst = 3;
  std::array<std::string_view, 20> fields;
  for (std::string_view& field : fields) {
    const std::size_t blank = rest.find(' ');
    if (blank == std::string_view::npos) return sbx::invalid("/proc/" + pid + "/stat is too short");
    rest.remove_prefix(blank + 1);
    field = rest.substr(0, rest.find(' '));
  }
  const std::string_view state = fields[0];
  // A zombie whose parent does not reap it spends nothing any more. Where other threads live on,
  // only its first one has ended.
  const bool ended =
      (state == "Z" || state == "X") && (fields[20 - kFirst] == "0" || fields[20 - kFirst] == "1");
  return Facts{ended, std::string(fields[22 - kFirst])};
}

}  // namespace

sbx::Result<std::string> own_identity() {
  const std::string pid = std::to_string(::getpid());
  SBX_ASSIGN(const std::string boot, boot_id());
  SBX_ASSIGN(const Facts own, facts_of(pid));
  return fmt::format("{}:{}:{}", boot, pid, own.start_time);
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
  const auto facts = facts_of(pid);
  if (!facts) return facts.error().sys_errno != ENOENT && facts.error().sys_errno != ESRCH;
  return !facts->ended && facts->start_time == identity.substr(second + 1);
}

}  // namespace agentd::ledger
