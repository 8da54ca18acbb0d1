#include "runtime/plan/host_facts.h"

#include <fmt/core.h>
#include <pwd.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/base/sys.h"

namespace sbx::plan {
namespace {

constexpr std::uint32_t kRangeSize = 65536;
constexpr std::size_t kMaxIdFile = 4 * 1024 * 1024;

struct SubRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// The caller's login name from /etc/passwd. Not getpwuid: the program is static, without NSS; a
// user from elsewhere can be listed in /etc/subuid by number.
std::string login_name(uid_t uid) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/etc/passwd", "re"), std::fclose);
  if (!file) return {};
  while (const passwd* entry = ::fgetpwent(file.get())) {
    if (entry->pw_uid == uid) return entry->pw_name;
  }
  return {};
}

std::string_view next_field(std::string_view& line) {
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  line.remove_prefix(colon == std::string_view::npos ? line.size() : colon + 1);
  return field;
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The first range of subuid(5) that belongs to the user, by name or by number.
std::optional<SubRange> subordinate_range(const std::string& path, const std::string& name,
                                          uid_t uid) {
  const auto text = sys::read_file(path, kMaxIdFile);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t newline = rest.find('\n');
    std::string_view line = rest.substr(0, newline);
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
    const std::string_view owner = next_field(line);
    if (owner != std::to_string(uid) && (name.empty() || owner != name)) continue;
    const auto first = number(next_field(line));
    const auto count = number(next_field(line));
    if (first && count && *count > 0) return SubRange{*first, *count};
  }
  return std::nullopt;
}

bool no_new_privs_set() {
  const auto status = sys::read_file("/proc/self/status", 64 * 1024);
  return status && status->find("NoNewPrivs:\t1") != std::string::npos;
}

void choose_user_ids(HostFacts& facts) {
  facts.ids = IdMode::kSingle;
  facts.id_count = 1;
  const std::string name = login_name(facts.host_uid);
  const auto uids = subordinate_range("/etc/subuid", name, facts.host_uid);
  const auto gids = subordinate_range("/etc/subgid", name, facts.host_uid);
  if (!uids || !gids) {
    facts.id_detail = "no subordinate ids in /etc/subuid and /etc/subgid";
    return;
  }
  if (::access("/usr/bin/newuidmap", X_OK) != 0 || ::access("/usr/bin/newgidmap", X_OK) != 0) {
    facts.id_detail = "newuidmap is missing (package uidmap)";
    return;
  }
  if (no_new_privs_set()) {
    facts.id_detail = "newuidmap cannot work under no_new_privs";
    return;
  }
  facts.ids = IdMode::kSubordinate;
  facts.sub_uid = uids->first;
  facts.sub_gid = gids->first;
  facts.id_count = 1 + std::min({uids->count, gids->count, kRangeSize - 1});
  facts.id_detail = "subordinate ids";
}

policy::LayerMask missing_namespaces() {
  constexpr struct {
    const char* path;
    policy::Layer layer;
  } kNamespaces[] = {
      {"/proc/self/ns/user", policy::Layer::kUserNamespace},
      {"/proc/self/ns/pid", policy::Layer::kPidNamespace},
      {"/proc/self/ns/mnt", policy::Layer::kMountNamespace},
      {"/proc/self/ns/net", policy::Layer::kNetNamespace},
      {"/proc/self/ns/ipc", policy::Layer::kIpcNamespace},
      {"/proc/self/ns/uts", policy::Layer::kUtsNamespace},
      {"/proc/self/ns/cgroup", policy::Layer::kCgroupNamespace},
      {"/proc/self/ns/time", policy::Layer::kTimeNamespace},
  };
  policy::LayerMask missing = 0;
  for (const auto& entry : kNamespaces) {
    if (::access(entry.path, F_OK) != 0) missing |= policy::layer_bit(entry.layer);
  }
  return missing;
}

// Before, a clone that shares memory is refused (EINVAL) once children have a time namespace to
// enter.
bool kernel_at_least(unsigned major, unsigned minor) {
  utsname name{};
  unsigned have_major = 0;
  unsigned have_minor = 0;
  if (::uname(&name) != 0 || std::sscanf(name.release, "%u.%u", &have_major, &have_minor) != 2) {
    return false;
  }
  return have_major > major || (have_major == major && have_minor >= minor);
}

std::uint32_t usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(CPU_COUNT(&set));
}

std::uint64_t hard_limit(__rlimit_resource_t resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_max : 0;
}

void read_limits(HostFacts& facts) {
  facts.hard_nofile = hard_limit(RLIMIT_NOFILE);
  facts.hard_fsize = hard_limit(RLIMIT_FSIZE);
  facts.hard_memlock = hard_limit(RLIMIT_MEMLOCK);
  facts.hard_msgqueue = hard_limit(RLIMIT_MSGQUEUE);
  facts.hard_sigpending = hard_limit(RLIMIT_SIGPENDING);
  facts.hard_core = hard_limit(RLIMIT_CORE);
  if (facts.hard_core == 0) facts.core_is_piped = core_pattern_is_piped();
  facts.hard_cpu = hard_limit(RLIMIT_CPU);
  facts.hard_as = hard_limit(RLIMIT_AS);
  facts.hard_data = hard_limit(RLIMIT_DATA);
  facts.hard_nproc = hard_limit(RLIMIT_NPROC);
  facts.hard_stack = hard_limit(RLIMIT_STACK);
}

}  // namespace

bool core_pattern_is_piped() {
  const auto pattern = sys::read_file("/proc/sys/kernel/core_pattern", 4096);
  return !pattern || pattern->starts_with('|');
}

HostFacts read_host_facts(const policy::RuntimeConfig& config, policy::LayerMask allow_missing) {
  HostFacts facts;
  facts.root = ::geteuid() == 0;
  if (facts.root) {
    facts.ids = IdMode::kRange;
    facts.id_count = kRangeSize;
    facts.host_uid = facts.host_gid = config.uid_base;
    facts.id_detail = "range of 65536 from " + std::to_string(config.uid_base);
  } else {
    facts.host_uid = ::geteuid();
    facts.host_gid = ::getegid();
    choose_user_ids(facts);
  }
  facts.cpus = usable_cpus();
  struct sysinfo info{};
  if (::sysinfo(&info) == 0) facts.memory = info.totalram * std::uint64_t{info.mem_unit};
  read_limits(facts);
  if (allow_missing != 0) facts.missing = missing_namespaces();
  if (!kernel_at_least(6, 3)) facts.missing |= policy::layer_bit(policy::Layer::kTimeNamespace);
  return facts;
}

policy::HostBounds bounds_of_host(const HostFacts& facts) {
  return {facts.memory, facts.cpus, facts.hard_nofile, facts.hard_fsize};
}

void serve_as(HostFacts& facts, std::uint32_t uid, std::uint32_t gid,
              const policy::RuntimeConfig& config) {
  facts.root = false;
  facts.ids = IdMode::kSubordinate;
  facts.id_count = kRangeSize;
  facts.host_uid = uid;
  facts.host_gid = gid;
  facts.sub_uid = facts.sub_gid = config.uid_base + kRangeSize;
  facts.id_detail = "range of 65535 from " + std::to_string(facts.sub_uid);
}

Result<void> check_devices() {
  for (const Device& device : kGivenDevices) {
    const std::string path = std::string("/dev/") + device.name;
    struct stat found{};
    const bool there = ::stat(path.c_str(), &found) == 0;
    if (there && S_ISCHR(found.st_mode) && found.st_rdev == makedev(device.major, device.minor)) {
      continue;
    }
    const std::string make =
        fmt::format("mknod -m 666 {} c {} {}", path, device.major, device.minor);
    return host_lacks("devices", there ? 0 : errno, there ? path + " is not that device" : path,
                      (there ? "rm -f " + path + " && " : "") + make +
                          " (as root; a container is given it by its engine)");
  }
  return {};
}

}  // namespace sbx::plan
