#include "runtime/daemon/config.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <optional>
#include <set>
#include <variant>

#include "runtime/base/config_file.h"
#include "runtime/base/config_template.h"
#include "runtime/base/log.h"
#include "runtime/base/toml.h"
#include "runtime/daemon/config_check.h"
#include "runtime/policy/layers.h"

namespace sbx::daemon {
namespace {

constexpr std::uint32_t kDay = 24 * 3600;

// Members that take any value of their type need no function of their own.
using Member = std::variant<std::string DaemonConfig::*, std::uint32_t DaemonConfig::*,
                            std::uint64_t DaemonConfig::*, MemoryBudget DaemonConfig::*,
                            std::vector<std::string> DaemonConfig::*,
                            std::vector<std::uint32_t> DaemonConfig::*>;
using Check = Result<void> (*)(const TomlValue&, std::string_view origin);

// One key. `comment` has its lines separated by '\n'; `min` and `max` bound numbers.
struct Key {
  std::string_view path;  // "sessions.idle_seconds"
  std::string_view comment;
  Member member;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  Check check = nullptr;  // of each string: what is allowed beyond being one
};

Error out_of_range(const TomlValue& value, std::string_view origin, const std::string& text,
                   const std::string& min, const std::string& max) {
  return toml_error(origin, value, fmt::format("{} is out of range: {} to {}", text, min, max));
}

Result<void> check_path(const TomlValue& value, std::string_view origin) {
  const bool plain = value.text.find_first_of(std::string_view("\0\n", 2)) == std::string::npos;
  if (plain && value.text.starts_with('/')) return {};
  return toml_error(origin, value, "must be an absolute path");
}

Result<void> check_socket(const TomlValue& value, std::string_view origin) {
  if (value.text.empty()) return {};
  SBX_TRY(check_path(value, origin));
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (value.text.size() <= kLongest && value.text.back() != '/') return {};
  return toml_error(origin, value,
                    fmt::format("must be a file's path of at most {} bytes", kLongest));
}

Result<void> check_path_or_empty(const TomlValue& value, std::string_view origin) {
  if (value.text.empty()) return {};
  return check_path(value, origin);
}

Result<void> check_name(const TomlValue& value, std::string_view origin) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  constexpr std::size_t kLongest = 64;
  if (!value.text.empty() && value.text.size() <= kLongest && value.text.front() != '.' &&
      value.text.find_first_not_of(kAllowed) == std::string::npos) {
    return {};
  }
  return toml_error(origin, value,
                    fmt::format("must be 1 to {} characters of A-Z a-z 0-9 _ - .", kLongest));
}

Result<void> check_layer(const TomlValue& value, std::string_view origin) {
  const auto layer = policy::layer_from_name(value.text);
  if (layer && policy::layer_is_indispensable(*layer)) {
    return toml_error(origin, value,
                      fmt::format("without '{}' nothing would be isolated", value.text));
  }
  if (layer && policy::layer_required(*layer)) return {};
  return toml_error(origin, value, fmt::format("'{}' is not a required layer", value.text));
}

Result<void> check_log_level(const TomlValue& value, std::string_view origin) {
  if (log::level_from_name(value.text)) return {};
  return toml_error(origin, value, "must be debug, info, warning or error");
}

const Key kKeys[] = {
    {"socket",
     "Where to listen. Empty: /run/sbx/sbxd.sock when started by root, else\n"
     "$XDG_RUNTIME_DIR/sbx/sbxd.sock. A socket passed by systemd goes before this.",
     &DaemonConfig::socket, 0, 0, check_socket},
    {"state_dir",
     "Sessions and the audit file. Empty: /var/lib/sbx when started by root, else\n"
     "$STATE_DIRECTORY (systemd), else $XDG_STATE_HOME/sbx.",
     &DaemonConfig::state_dir, 0, 0, check_path_or_empty},
    {"user", "The user that sbxd becomes when root starts it. Not root.", &DaemonConfig::user, 0, 0,
     check_name},
    {"allow_uids",
     "The users that may connect, by number. Empty: all whom the socket's mode lets in.",
     &DaemonConfig::allow_uids, 0, 0xfffffffe},
    {"image", "The root file system of runs: an image's name, or \"host\" for the host's /usr.",
     &DaemonConfig::image, 0, 0, check_name},
    {"profiles",
     "Profile files that clients may name, besides the shipped ones. Nothing else is ever\n"
     "opened for a client.",
     &DaemonConfig::profiles, 0, 0, check_path},
    {"allow_missing",
     "Required layers that runs do without where this host lacks them, knowingly. Each result\n"
     "says so.",
     &DaemonConfig::allow_missing, 0, 0, check_layer},
    {"max_running", "Runs at once.", &DaemonConfig::max_running, 1, 10'000},
    {"max_queued", "Requests that wait for their turn, of all users together.",
     &DaemonConfig::max_queued, 0, 100'000},
    {"max_queued_per_peer", "Requests that wait, of one user.", &DaemonConfig::max_queued_per_peer,
     0, 100'000},
    {"queue_seconds", "How long a request waits before it is refused (429).",
     &DaemonConfig::queue_seconds, 1, kDay},
    {"memory_budget",
     "The memory limits of all runs together: a size, or a percentage of what the host, or\n"
     "the unit's cgroup, has. At least 16M.",
     &DaemonConfig::memory_budget, 16 * policy::kMiB, 0},
    {"body_budget",
     "Bytes of request bodies that sbxd holds at once; of one user's half at most. A body counts\n"
     "until its request is answered.",
     &DaemonConfig::body_budget, 32 * policy::kMiB, 1024 * policy::kMiB},
    {"answer_budget",
     "Bytes of output that sbxd holds for those who asked for it; for one user half at most. A "
     "run\n"
     "counts with its stdout_bytes and stderr_bytes, and then with what there is, until its "
     "client\n"
     "has read it. Unless it is written here it grows with max_running.",
     &DaemonConfig::answer_budget, 4 * policy::kMiB, 65536 * policy::kMiB},
    {"drain_seconds", "How long runs may go on after SIGTERM, before they are cancelled.",
     &DaemonConfig::drain_seconds, 0, kDay},
    {"reaper_seconds", "How often leftovers of dead sbx programs are looked for.",
     &DaemonConfig::reaper_seconds, 1, kDay},
    {"stream_buffer",
     "Bytes of live output that wait for a slow reader. What does not fit is dropped, and\n"
     "counted in an event \"lost\".",
     &DaemonConfig::stream_buffer, 64 * policy::kKiB, 64 * policy::kMiB},
    {"max_connections", "Connections at once.", &DaemonConfig::max_connections, 1, 100'000},
    {"max_connections_per_peer", "Connections at once, of one user.",
     &DaemonConfig::max_connections_per_peer, 1, 100'000},
    {"audit_sync_seconds",
     "How often the audit file is forced to the disk: what a power failure can cost. 0: before\n"
     "each result is sent. The death of sbxd alone loses no line that the disk took.",
     &DaemonConfig::audit_sync_seconds, 0, 3600},
    {"log_level", "What is logged on stderr: debug, info, warning, error.",
     &DaemonConfig::log_level, 0, 0, check_log_level},
    {"sessions.max", "Sessions at once.", &DaemonConfig::session_max, 1, 30'000},
    {"sessions.max_per_peer", "Sessions at once, of one user.", &DaemonConfig::session_max_per_peer,
     1, 30'000},
    {"sessions.idle_seconds", "How long a session lives on after its last use.",
     &DaemonConfig::session_idle_seconds, 1, 365 * kDay},
    {"sessions.age_seconds", "How long a session lives at most.",
     &DaemonConfig::session_age_seconds, 1, 365 * kDay},
};
constexpr std::string_view kCeilings = "ceilings";

const Key* find_key(std::string_view path) {
  const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                 [&](const Key& each) { return each.path == path; });
  return key == std::end(kKeys) ? nullptr : key;
}

// Reads one value into one member; the overload is chosen by the member's type.
struct Reader {
  DaemonConfig& config;
  const Key& key;
  const TomlValue& value;
  std::string_view origin;

  [[nodiscard]] Result<std::uint64_t> number(const TomlValue& item) const {
    SBX_TRY(check_kind(origin, item, TomlKind::kInteger));
    if (item.integer < 0 || static_cast<std::uint64_t>(item.integer) < key.min ||
        static_cast<std::uint64_t>(item.integer) > key.max) {
      return out_of_range(item, origin, item.text, std::to_string(key.min),
                          std::to_string(key.max));
    }
    return static_cast<std::uint64_t>(item.integer);
  }
  [[nodiscard]] Result<std::uint64_t> size(std::uint64_t max) const {
    if (value.kind != TomlKind::kString) {
      SBX_TRY(check_kind(origin, value, TomlKind::kInteger));
    }
    const auto bytes = policy::parse_size(value.text);
    if (!bytes) return toml_error(origin, value, bytes.error().detail);
    if (*bytes < key.min && max == UINT64_MAX) {
      return toml_error(
          origin, value,
          fmt::format("{} is out of range: at least {}", value.text, policy::size_text(key.min)));
    }
    if (*bytes < key.min || *bytes > max) {
      return out_of_range(value, origin, value.text, policy::size_text(key.min),
                          policy::size_text(max));
    }
    return *bytes;
  }
  [[nodiscard]] Result<std::string> string(const TomlValue& item) const {
    SBX_TRY(check_kind(origin, item, TomlKind::kString));
    if (key.check != nullptr) SBX_TRY(key.check(item, origin));
    return item.text;
  }

  Result<void> operator()(std::string DaemonConfig::* member) const {
    SBX_ASSIGN(config.*member, string(value));
    return {};
  }
  Result<void> operator()(std::uint32_t DaemonConfig::* member) const {
    SBX_ASSIGN(const std::uint64_t read, number(value));
    config.*member = static_cast<std::uint32_t>(read);
    return {};
  }
  Result<void> operator()(std::uint64_t DaemonConfig::* member) const {
    SBX_ASSIGN(config.*member, size(key.max));
    return {};
  }
  Result<void> operator()(MemoryBudget DaemonConfig::* member) const {
    if (value.kind == TomlKind::kString && value.text.ends_with('%')) {
      const auto percent = policy::parse_size(value.text.substr(0, value.text.size() - 1));
      if (!percent || *percent < 1 || *percent > 100) {
        return out_of_range(value, origin, value.text, "1%", "100%");
      }
      config.*member = {static_cast<std::uint32_t>(*percent), 0};
      return {};
    }
    SBX_ASSIGN((config.*member).bytes, size(UINT64_MAX));
    return {};
  }
  Result<void> operator()(std::vector<std::string> DaemonConfig::* member) const {
    SBX_TRY(check_kind(origin, value, TomlKind::kArray));
    (config.*member).clear();
    for (const TomlValue& item : value.items) {
      SBX_ASSIGN(std::string text, string(item));
      (config.*member).push_back(std::move(text));
    }
    return {};
  }
  Result<void> operator()(std::vector<std::uint32_t> DaemonConfig::* member) const {
    SBX_TRY(check_kind(origin, value, TomlKind::kArray));
    (config.*member).clear();
    for (const TomlValue& item : value.items) {
      SBX_ASSIGN(const std::uint64_t read, number(item));
      (config.*member).push_back(static_cast<std::uint32_t>(read));
    }
    return {};
  }
};

// The value as the template shows it.
struct Writer {
  const DaemonConfig& config;

  static std::string quoted(const std::string& text) { return fmt::format("\"{}\"", text); }
  std::string operator()(std::string DaemonConfig::* member) const {
    return quoted(config.*member);
  }
  std::string operator()(std::uint32_t DaemonConfig::* member) const {
    return std::to_string(config.*member);
  }
  std::string operator()(std::uint64_t DaemonConfig::* member) const {
    return quoted(policy::size_text(config.*member));
  }
  std::string operator()(MemoryBudget DaemonConfig::* member) const {
    const MemoryBudget& budget = config.*member;
    return quoted(budget.bytes != 0 ? policy::size_text(budget.bytes)
                                    : fmt::format("{}%", budget.percent));
  }
  std::string operator()(std::vector<std::string> DaemonConfig::* member) const {
    std::vector<std::string> items;
    for (const std::string& item : config.*member) items.push_back(quoted(item));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  std::string operator()(std::vector<std::uint32_t> DaemonConfig::* member) const {
    return fmt::format("[{}]", fmt::join(config.*member, ", "));
  }
};

Result<void> read_ceilings(DaemonConfig& config, const TomlValue& table, std::string_view origin) {
  SBX_TRY(check_kind(origin, table, TomlKind::kTable));
  for (const TomlValue& item : table.items) {
    if (item.kind == TomlKind::kArray || item.kind == TomlKind::kTable) {
      return toml_error(origin, item, "must be a value of that limit");
    }
    if (auto set = config.ceilings.set(item.key, item.text); !set) {
      return toml_error(origin, item, set.error().detail);
    }
    if (auto enough = check_least(config.ceilings.most(), item.key); !enough) {
      return toml_error(origin, item, enough.error().detail);
    }
  }
  return {};
}

Result<void> read_table(DaemonConfig& config, const TomlValue& table, std::string_view origin) {
  for (const TomlValue& item : table.items) {
    if (item.path == kCeilings) {
      SBX_TRY(read_ceilings(config, item, origin));
      continue;
    }
    if (const Key* key = find_key(item.path)) {
      SBX_TRY(std::visit(Reader{config, *key, item, origin}, key->member));
      continue;
    }
    const std::string prefix = item.path + ".";
    const bool is_group = std::any_of(std::begin(kKeys), std::end(kKeys), [&](const Key& each) {
      return each.path.starts_with(prefix);
    });
    if (!is_group) return toml_error(origin, item, "unknown key");
    SBX_TRY(check_kind(origin, item, TomlKind::kTable));
    SBX_TRY(read_table(config, item, origin));
  }
  return {};
}

void note_lines(const TomlValue& table, WrittenKeys& written) {
  for (const TomlValue& item : table.items) {
    written.lines.emplace(item.path, item.line);
    note_lines(item, written);
  }
}

void add_ceilings(ConfigTemplate& file, const Ceilings& ceilings) {
  file.begin_table(
      "ceilings",
      "The most that a run may have of each limit (policy/README.md has their names).\n"
      "A request that asks for more is refused; what its profile brings is lowered. At\n"
      "least 1 second of wall time, 4M of memory and 16 descriptors, which any run needs.");
  for (const policy::LimitField& field : policy::limit_fields()) {
    const std::string path = fmt::format("ceilings.{}", field.name);
    if (!ceilings.has(field.name)) {
      file.add_unset(path, field.help);
      continue;
    }
    const bool quoted =
        field.kind == policy::LimitKind::kBytes || field.kind == policy::LimitKind::kNetwork;
    const std::string value = ceilings.text(field.name);
    file.add(path, field.help, quoted ? fmt::format("\"{}\"", value) : value);
  }
}

}  // namespace

Result<DaemonConfig> load_daemon_config(const std::string& path) {
  SBX_ASSIGN(const auto file, find_config_file(path, "sbxd.toml"));
  if (!file) return DaemonConfig{};
  return parse_daemon_config(file->text, file->path);
}

Result<DaemonConfig> parse_daemon_config(std::string_view text, std::string_view origin) {
  SBX_ASSIGN(const TomlValue root, parse_toml(text, origin));
  DaemonConfig config;
  SBX_TRY(read_table(config, root, origin));
  config.written.origin = origin;
  note_lines(root, config.written);
  SBX_TRY(settle_whole(config));
  return config;
}

std::string daemon_config_template() {
  ConfigTemplate file(
      "sbxd reads this file from /etc/sbx/sbxd.toml, else from $XDG_CONFIG_HOME/sbx/sbxd.toml.\n"
      "These are the defaults.");
  const DaemonConfig defaults;
  for (const Key& key : kKeys) {
    file.add(key.path, key.comment, std::visit(Writer{defaults}, key.member));
  }
  add_ceilings(file, defaults.ceilings);
  return file.text();
}

}  // namespace sbx::daemon
