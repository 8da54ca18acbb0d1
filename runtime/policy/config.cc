#include "runtime/policy/config.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>

#include "runtime/base/config_template.h"
#include "runtime/base/sys.h"
#include "runtime/base/toml.h"

namespace sbx::policy {
namespace {

constexpr std::uint32_t kUidRange = 65536;  // ids that root hands out from uid_base
constexpr std::size_t kMaxCgroupNameLength = 64;

// One key of runtime.toml: how it is read, and how the template shows it.
struct ConfigKey {
  std::string_view name;
  std::string_view comment;  // lines separated by '\n'
  Result<void> (*read)(RuntimeConfig&, const TomlValue&, std::string_view origin);
  std::string (*show)(const RuntimeConfig&);
};

std::string show_string(const std::string& text) {
  return fmt::format("\"{}\"", text);
}

Result<void> read_uid_base(RuntimeConfig& config, const TomlValue& value, std::string_view origin) {
  SBX_TRY(check_kind(origin, value, TomlKind::kInteger));
  // Below are the ids of the host's own users; above is (uid_t)-1, which is no id.
  constexpr std::int64_t kHighest = 0xffffffffLL - kUidRange;
  if (value.integer < kUidRange || value.integer > kHighest) {
    return toml_error(origin, value,
                      fmt::format("{} is out of range: {} to {}", value.text, kUidRange, kHighest));
  }
  config.uid_base = static_cast<std::uint32_t>(value.integer);
  return {};
}

Result<std::string> read_directory(const TomlValue& value, std::string_view origin) {
  SBX_TRY(check_kind(origin, value, TomlKind::kString));
  const bool plain = value.text.find_first_of(std::string_view("\0\n", 2)) == std::string::npos;
  if (!plain || (!value.text.empty() && !value.text.starts_with('/'))) {
    return toml_error(origin, value, "must be an absolute path, or empty");
  }
  return value.text;
}

Result<void> read_runtime_dir(RuntimeConfig& config, const TomlValue& value,
                              std::string_view origin) {
  SBX_ASSIGN(config.runtime_dir, read_directory(value, origin));
  return {};
}

Result<void> read_image_dir(RuntimeConfig& config, const TomlValue& value,
                            std::string_view origin) {
  SBX_ASSIGN(config.image_dir, read_directory(value, origin));
  return {};
}

Result<void> read_cgroup_parent(RuntimeConfig& config, const TomlValue& value,
                                std::string_view origin) {
  SBX_TRY(check_kind(origin, value, TomlKind::kString));
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  const std::string& name = value.text;
  // One component, and no leading dot: "..".
  if (name.empty() || name.size() > kMaxCgroupNameLength || name.front() == '.' ||
      !std::all_of(name.begin(), name.end(), fits)) {
    return toml_error(origin, value,
                      fmt::format("must be 1 to {} characters of A-Z a-z 0-9 - _ . and not begin "
                                  "with a dot",
                                  kMaxCgroupNameLength));
  }
  config.cgroup_parent = name;
  return {};
}

// A ceiling is 0 (none) or any value that the limit of that name may have.
Result<Limits> read_ceiling(const TomlValue& value, std::string_view origin,
                            std::string_view limit) {
  Limits limits;
  if (auto set = set_limit(limits, limit, value.text); !set) {
    return toml_error(origin, value, set.error().detail + "; 0 means no ceiling");
  }
  return limits;
}

bool is_zero(const TomlValue& value) {
  return value.kind == TomlKind::kInteger && value.integer == 0;
}

Result<void> read_max_memory(RuntimeConfig& config, const TomlValue& value,
                             std::string_view origin) {
  config.max_memory = 0;
  if (is_zero(value)) return {};
  if (value.kind != TomlKind::kString) SBX_TRY(check_kind(origin, value, TomlKind::kInteger));
  SBX_ASSIGN(const Limits limits, read_ceiling(value, origin, "memory"));
  config.max_memory = limits.memory;
  return {};
}

Result<void> read_max_cpus(RuntimeConfig& config, const TomlValue& value, std::string_view origin) {
  config.max_cpus_milli = 0;
  if (is_zero(value)) return {};
  if (value.kind != TomlKind::kInteger) SBX_TRY(check_kind(origin, value, TomlKind::kFloat));
  SBX_ASSIGN(const Limits limits, read_ceiling(value, origin, "cpus"));
  config.max_cpus_milli = limits.cpus_milli;
  return {};
}

Result<void> read_max_pids(RuntimeConfig& config, const TomlValue& value, std::string_view origin) {
  config.max_pids = 0;
  if (is_zero(value)) return {};
  SBX_TRY(check_kind(origin, value, TomlKind::kInteger));
  SBX_ASSIGN(const Limits limits, read_ceiling(value, origin, "pids"));
  config.max_pids = limits.pids;
  return {};
}

Result<void> read_max_wall(RuntimeConfig& config, const TomlValue& value, std::string_view origin) {
  config.max_wall_seconds = 0;
  if (is_zero(value)) return {};
  SBX_TRY(check_kind(origin, value, TomlKind::kInteger));
  SBX_ASSIGN(const Limits limits, read_ceiling(value, origin, "wall_seconds"));
  using std::chrono::duration_cast;
  config.max_wall_seconds =
      static_cast<std::uint32_t>(duration_cast<std::chrono::seconds>(limits.wall_seconds).count());
  return {};
}

std::string show_cpus(const RuntimeConfig& config) {
  if (config.max_cpus_milli == 0) return "0";
  Limits limits;
  limits.cpus_milli = config.max_cpus_milli;
  return limit_text(limits, "cpus");
}

const ConfigKey kKeys[] = {
    {"uid_base",
     "The first of the 65536 host user ids that runs started by root use, one each.\n"
     "No user, group or container of this host may have an id among them.",
     read_uid_base, [](const RuntimeConfig& c) { return std::to_string(c.uid_base); }},
    {"runtime_dir",
     "Records and locks of runs. Empty: /run/sbx for root, else $XDG_RUNTIME_DIR/sbx,\n"
     "else /tmp/sbx-<uid>.",
     read_runtime_dir, [](const RuntimeConfig& c) { return show_string(c.runtime_dir); }},
    {"image_dir",
     "Root file systems. Empty: /var/lib/sbx/images where it holds the image, else\n"
     "$XDG_DATA_HOME/sbx/images; for an sbxd that root starts, the first alone.",
     read_image_dir, [](const RuntimeConfig& c) { return show_string(c.image_dir); }},
    {"cgroup_parent", "The name of our subtree of the cgroup file system.", read_cgroup_parent,
     [](const RuntimeConfig& c) { return show_string(c.cgroup_parent); }},
    {"max_memory",
     "Ceilings: a run that asks for more is refused; what its profile brings is lowered.\n"
     "0: only what the host has.\n"
     "Bytes, or a string like \"4G\".",
     read_max_memory,
     [](const RuntimeConfig& c) {
       return c.max_memory == 0 ? "0" : show_string(size_text(c.max_memory));
     }},
    {"max_cpus", "CPUs, decimal.", read_max_cpus, show_cpus},
    {"max_pids", "Processes and threads.", read_max_pids,
     [](const RuntimeConfig& c) { return std::to_string(c.max_pids); }},
    {"max_wall_seconds", "Seconds of wall time.", read_max_wall,
     [](const RuntimeConfig& c) { return std::to_string(c.max_wall_seconds); }},
};

enum class Whose { kOperators, kUsers };

bool is_owners(const struct stat& info) {
  return info.st_uid == 0 || info.st_uid == ::geteuid();
}

bool is_anothers(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) != 0 || !is_owners(info);
}

// Whether a file that could not be opened may be passed over.
bool is_absent(const std::string& path, Whose whose, int error) {
  struct stat info{};
  const bool seen = ::lstat(path.c_str(), &info) == 0;
  const bool passed_over = !seen || (whose == Whose::kUsers && !is_owners(info));
  if (error == ENOENT || error == ENOTDIR) return passed_over;  // a link may lead nowhere
  return error == EACCES && whose == Whose::kUsers && passed_over;
}

// An absent file is nullopt. One that is there and cannot be read must not be passed over, because
// it may hold ceilings; but a user's that is out of his own reach, or belongs to another but root,
// is somebody else's (HOME kept by su): nobody runs by what others wrote.
Result<std::optional<RuntimeConfig>> load_if_present(const std::string& path, Whose whose) {
  const auto fd = sys::open_regular(AT_FDCWD, path, O_RDONLY);
  if (fd && whose == Whose::kUsers && is_anothers(fd->get())) {
    return std::optional<RuntimeConfig>();
  }
  const auto text = fd ? sys::read_all(fd->get(), kMaxTomlBytes) : Result<std::string>(fd.error());
  if (!text) {
    const Error& error = text.error();
    if (is_absent(path, whose, error.sys_errno)) return std::optional<RuntimeConfig>();
    return host_lacks("read", error.sys_errno, path + ": " + error.detail,
                      "make " + path + " readable, or remove it");
  }
  SBX_ASSIGN(auto config, parse_runtime_config(*text, path));
  return std::optional<RuntimeConfig>(std::move(config));
}

std::string user_config_path() {
  // XDG base directories: a relative value is to be ignored.
  const char* base = std::getenv("XDG_CONFIG_HOME");
  if (base != nullptr && base[0] == '/') return std::string(base) + "/sbx/runtime.toml";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.config/sbx/runtime.toml";
  return {};
}

}  // namespace

std::vector<Bound> bounds_of(const RuntimeConfig& config, const HostBounds& host) {
  std::vector<Bound> bounds;
  Limits most;
  const auto add_configured = [&](std::string_view limit, bool there) {
    if (!there) return;
    bounds.push_back({limit, most, fmt::format("the ceiling max_{} in runtime.toml,", limit),
                      fmt::format(", or have max_{} raised", limit)});
  };
  most.memory = config.max_memory;
  most.cpus_milli = config.max_cpus_milli;
  most.pids = config.max_pids;
  most.wall_seconds = std::chrono::seconds{config.max_wall_seconds};
  add_configured("memory", config.max_memory != 0);
  add_configured("cpus", config.max_cpus_milli != 0);
  add_configured("pids", config.max_pids != 0);
  add_configured("wall_seconds", config.max_wall_seconds != 0);
  most.memory = host.memory;
  most.cpus_milli = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{host.cpus} * 1000, 0xffffffffU));
  most.nofile = static_cast<decltype(most.nofile)>(
      std::min<std::uint64_t>(host.nofile, std::numeric_limits<decltype(most.nofile)>::max()));
  most.fsize = host.fsize;
  const auto add_hosts = [&](std::string_view limit, std::uint64_t bound, std::string way_out) {
    if (bound == 0 || bound == RLIM_INFINITY) return;
    bounds.push_back({limit, most, "this host's", std::move(way_out)});
  };
  const std::string raise = ", or raise the hard limit where this is started from (ulimit ";
  add_hosts("memory", host.memory, {});
  add_hosts("cpus", host.cpus, {});
  add_hosts("nofile", host.nofile, raise + "-n)");
  add_hosts("fsize", host.fsize, raise + "-f)");
  return bounds;
}

Result<RuntimeConfig> load_runtime_config() {
  SBX_ASSIGN(const auto system, load_if_present("/etc/sbx/runtime.toml", Whose::kOperators));
  if (system) return *system;
  const std::string path = user_config_path();
  if (path.empty()) return RuntimeConfig{};
  SBX_ASSIGN(const auto user, load_if_present(path, Whose::kUsers));
  return user ? *user : RuntimeConfig{};
}

Result<RuntimeConfig> parse_runtime_config(std::string_view text, std::string_view origin) {
  SBX_ASSIGN(const TomlValue root, parse_toml(text, origin));
  RuntimeConfig config;
  for (const TomlValue& item : root.items) {
    const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                   [&](const ConfigKey& each) { return each.name == item.key; });
    if (key == std::end(kKeys)) return toml_error(origin, item, "unknown key");
    SBX_TRY(key->read(config, item, origin));
  }
  return config;
}

std::string runtime_config_template() {
  ConfigTemplate file(
      "The sbx programs read this file from /etc/sbx/runtime.toml, else from\n"
      "$XDG_CONFIG_HOME/sbx/runtime.toml. These are the defaults.");
  const RuntimeConfig defaults;
  for (const ConfigKey& key : kKeys) file.add(key.name, key.comment, key.show(defaults));
  return file.text();
}

void lower_to_ceilings(Limits& limits, const RuntimeConfig& config, const HostBounds& host,
                       const std::vector<std::string>& asked) {
  for (const Bound& bound : bounds_of(config, host)) {
    if (std::find(asked.begin(), asked.end(), bound.limit) != asked.end()) continue;
    if (limit_is_above(limits, bound.most, bound.limit)) {
      copy_limit(limits, bound.most, bound.limit);
    }
  }
}

Result<void> check_ceilings(const Limits& limits, const RuntimeConfig& config,
                            const HostBounds& host) {
  for (const Bound& bound : bounds_of(config, host)) {
    if (!limit_is_above(limits, bound.most, bound.limit)) continue;
    const std::string most = limit_text(bound.most, bound.limit);
    return invalid(fmt::format("{}: {} is more than {} {}", bound.limit,
                               limit_text(limits, bound.limit), bound.whose, most),
                   fmt::format("ask for at most {}{}", most, bound.way_out));
  }
  return {};
}

}  // namespace sbx::policy
