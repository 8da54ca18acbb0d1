#include "runtime/daemon/host_memory.h"

#include <linux/magic.h>
#include <sys/sysinfo.h>

#include <algorithm>

#include "runtime/base/sys.h"
#include "runtime/cgroup/group_dir.h"
#include "runtime/cgroup/hierarchy.h"

namespace sbx::daemon {
namespace {

constexpr std::size_t kMaxProcFile = 64 * 1024;

// v2: the lowest memory.max from the process's own group upwards ("max" is none).
std::uint64_t v2_limit(const cgroup::Hierarchies& hierarchies, std::uint64_t most) {
  auto group = cgroup::own_v2_group();
  if (!group || hierarchies.v2.empty()) return most;
  for (std::string path = *group; path.size() > 1; path = path.substr(0, path.rfind('/'))) {
    const std::string directory = cgroup::group_directory(hierarchies.v2.front(), path);
    const auto dir = cgroup::GroupDir::open(directory, CGROUP2_SUPER_MAGIC);
    if (!dir) continue;
    if (const auto limit = dir->read_number("memory.max")) most = std::min(most, *limit);
  }
  return most;
}

// v1 tells the lowest of a group and those above it.
std::uint64_t v1_limit(const cgroup::Hierarchies& hierarchies, std::uint64_t most) {
  const cgroup::Mount* const mount = cgroup::find_v1(hierarchies, "memory");
  const auto text = sys::read_file("/proc/self/cgroup", kMaxProcFile);
  if (mount == nullptr || !text) return most;
  const std::string directory = cgroup::group_directory(*mount, parse_v1_group(*text, "memory"));
  const auto dir = cgroup::GroupDir::open(directory, CGROUP_SUPER_MAGIC);
  if (!dir) return most;
  const auto limit = dir->read_key("memory.stat", "hierarchical_memory_limit");
  return limit && *limit != 0 ? std::min(most, *limit) : most;
}

}  // namespace

std::uint64_t usable_memory() {
  struct sysinfo info{};
  if (::sysinfo(&info) != 0) return 0;
  const std::uint64_t host = std::uint64_t{info.totalram} * info.mem_unit;
  const auto hierarchies = cgroup::discover();
  if (!hierarchies) return host;
  return v1_limit(*hierarchies, v2_limit(*hierarchies, host));
}

std::uint64_t budget_bytes(const MemoryBudget& budget, std::uint64_t usable) {
  return budget.bytes != 0 ? budget.bytes : usable / 100 * budget.percent;
}

std::string parse_v1_group(std::string_view text, std::string_view controller) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find(':') + 1));  // "4:memory:/group"
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string names = "," + std::string(line.substr(0, colon)) + ",";
    if (names.find("," + std::string(controller) + ",") == std::string::npos) continue;
    return std::string(line.substr(colon + 1));
  }
  return {};
}

}  // namespace sbx::daemon
