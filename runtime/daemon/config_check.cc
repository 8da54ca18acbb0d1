#include "runtime/daemon/config_check.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/daemon/host_memory.h"
#include "runtime/daemon/identity.h"
#include "runtime/plan/image.h"

namespace sbx::daemon {
namespace {

using Number = std::uint32_t DaemonConfig::*;

// A share, and what it is one of.
struct Share {
  std::string_view path;
  Number part;
  std::string_view whole_path;
  Number whole;
  bool none_is_none = false;  // a whole of 0 makes the share meaningless
};
constexpr Share kShares[] = {
    {"max_queued_per_peer", &DaemonConfig::max_queued_per_peer, "max_queued",
     &DaemonConfig::max_queued, true},
    {"max_connections_per_peer", &DaemonConfig::max_connections_per_peer, "max_connections",
     &DaemonConfig::max_connections},
    {"sessions.max_per_peer", &DaemonConfig::session_max_per_peer, "sessions.max",
     &DaemonConfig::session_max},
    {"sessions.idle_seconds", &DaemonConfig::session_idle_seconds, "sessions.age_seconds",
     &DaemonConfig::session_age_seconds},
};

// A run takes about so many, a connection has itself and the file that it moves, a session its
// directory and the lock of its id; the rest is sbxd's own.
constexpr std::uint64_t kDescriptorsPerRun = 16;
constexpr std::uint64_t kDescriptorsPerConnection = 2;
constexpr std::uint64_t kDescriptorsPerSession = 2;
constexpr std::uint64_t kOwnDescriptors = 64;
constexpr std::uint64_t kMostFiles = 1024;  // of one result

std::uint64_t needed_descriptors(const DaemonConfig& config, std::uint64_t sessions) {
  return config.max_running * kDescriptorsPerRun +
         config.max_connections * kDescriptorsPerConnection + sessions * kDescriptorsPerSession +
         kOwnDescriptors;
}

Result<void> settle_share(DaemonConfig& config, const Share& share) {
  std::uint32_t& part = config.*share.part;
  const std::uint32_t whole = config.*share.whole;
  // A default is no reason to refuse what was written.
  if (!config.written.has(share.path)) part = std::min(part, whole);
  if (part <= whole || (whole == 0 && share.none_is_none)) return {};
  return at_key(config, share.path,
                invalid(fmt::format("{} is above {} ({})", part, share.whole_path, whole)));
}

std::uint64_t most_output(const Ceilings& ceilings) {
  policy::Limits most;
  most.stdout_bytes = most.stderr_bytes = 65536 * policy::kMiB;
  ceilings.apply(most);
  return most.stdout_bytes + most.stderr_bytes;
}

Result<void> settle_answers(DaemonConfig& config) {
  std::string_view culprit = "answer_budget";
  if (!config.written.has(culprit)) {
    // As many runs as are allowed at once, all of one user, with the usual limits.
    const policy::Limits usual;
    config.answer_budget = std::max(
        config.answer_budget, 2 * config.max_running * (usual.stdout_bytes + usual.stderr_bytes));
    culprit = config.written.has("ceilings.stdout_bytes") ? "ceilings.stdout_bytes"
                                                          : "ceilings.stderr_bytes";
  }
  const std::uint64_t longest = most_output(config.ceilings);
  if (longest <= config.answer_budget / 2) return {};
  return at_key(
      config, culprit,
      invalid(fmt::format("answer_budget ({}) is not twice what one run may write ({})",
                          policy::size_text(config.answer_budget), policy::size_text(longest)),
              "raise answer_budget, or lower ceilings.stdout_bytes and ceilings.stderr_bytes"));
}

Result<void> check_user(const DaemonConfig& config, bool root, std::vector<std::string>& warnings) {
  if (!root && !config.written.has("user")) return {};
  const auto user = find_service_user(config.user);
  if (user) return {};
  Error error = at_key(config, "user", user.error());
  if (root) return error;
  warnings.push_back(to_string(error) + ", should root start sbxd");
  return {};
}

Result<void> check_image(const DaemonConfig& config, const policy::RuntimeConfig& runtime) {
  const auto image = plan::find_image(config.image, runtime);
  if (image) return {};
  Error error = at_key(config, "image", image.error());
  error.fix = fix_by_config(std::move(error.fix));
  return error;
}

Result<void> check_bounds(const policy::RuntimeConfig& runtime) {
  for (const policy::Bound& bound : policy::bounds_of(runtime, {})) {
    auto enough = check_least(bound.most, bound.limit);
    if (!enough) {
      return unexpected(std::move(enough).error().with_context(
          fmt::format("runtime.toml: key 'max_{}'", bound.limit)));
    }
  }
  return {};
}

void check_memory(const DaemonConfig& config, std::uint64_t memory,
                  std::vector<std::string>& warnings) {
  if (memory == 0) return;
  const std::pair<std::string_view, std::uint64_t> budgets[] = {
      {"memory_budget", config.memory_budget.bytes},
      {"body_budget", config.body_budget},
      {"answer_budget", config.answer_budget}};
  for (const auto& [path, bytes] : budgets) {
    if (bytes <= memory) continue;
    warnings.push_back(
        fmt::format("{}: {} is more than the {}M of memory that this host, or the "
                    "unit's cgroup, has",
                    config.written.place(path), policy::size_text(bytes), memory / policy::kMiB));
  }
}

// The files of results take the rest: those of runs under way a half of it, those of answers that
// are not read yet the other, as a part of answer_budget.
void fit_files(DaemonConfig& config, std::uint64_t room, std::vector<std::string>& warnings) {
  const std::uint64_t half = room / 2;
  policy::Limits most;
  most.files = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(half / std::max(config.max_running, 1U), 1, kMostFiles));
  config.answer_bytes_per_file = config.answer_budget / std::max<std::uint64_t>(half, 1);
  config.ceilings.lower("files", most);
  if (most.files >= policy::Limits().files) return;
  warnings.push_back(
      fmt::format("a run may give out {} files at most: more descriptors are not left for the "
                  "files of {} runs (ulimit -n, LimitNOFILE)",
                  most.files, config.max_running));
}

// What more than there are would be used up by one user, and nobody else could connect: with fewer,
// fewer of all that takes some, each in proportion.
void fit_descriptors(DaemonConfig& config, std::uint64_t descriptors,
                     std::vector<std::string>& warnings) {
  if (descriptors == 0) return;
  const std::uint64_t room = std::max(descriptors, kOwnDescriptors) - kOwnDescriptors;
  const std::uint64_t needed = needed_descriptors(config, config.session_max) - kOwnDescriptors;
  const std::uint64_t most = room - room / 4;  // a quarter is for files at least
  if (needed <= most) return fit_files(config, room - needed, warnings);
  for (const Number number : {&DaemonConfig::max_running, &DaemonConfig::max_connections,
                              &DaemonConfig::max_connections_per_peer, &DaemonConfig::session_max,
                              &DaemonConfig::session_max_per_peer}) {
    const std::uint64_t share = config.*number * most / needed;
    config.*number = static_cast<std::uint32_t>(std::max<std::uint64_t>(share, 1));
  }
  warnings.push_back(fmt::format(
      "what max_running, max_connections and sessions.max allow needs about {} descriptors, and "
      "this process may have {} (ulimit -n, LimitNOFILE), a quarter for the files of results: they "
      "are lowered to {}, {} ({} for one user) and {} ({})",
      needed + kOwnDescriptors, descriptors, config.max_running, config.max_connections,
      config.max_connections_per_peer, config.session_max, config.session_max_per_peer));
  fit_files(config, room / 4, warnings);
}

}  // namespace

bool WrittenKeys::has(std::string_view path) const {
  return lines.find(path) != lines.end();
}

std::string WrittenKeys::place(std::string_view path) const {
  const auto line = lines.find(path);
  if (line == lines.end()) return fmt::format("key '{}' (not written: its default)", path);
  return fmt::format("{}:{}: key '{}'", origin, line->second, path);
}

Error at_key(const DaemonConfig& config, std::string_view path, Error error) {
  error.operation.clear();
  return std::move(error).with_context(config.written.place(path));
}

Result<void> settle_whole(DaemonConfig& config) {
  for (const Share& share : kShares) SBX_TRY(settle_share(config, share));
  SBX_TRY(settle_answers(config));
  if (config.user != "root") return {};
  return at_key(
      config, "user",
      invalid("must not be root", "name an ordinary user: useradd --system --no-create-home sbx"));
}

std::string fix_by_config(std::string fix) {
  constexpr std::string_view kSbxRunsWayOut = " (or give --rootfs host)";
  if (!fix.ends_with(kSbxRunsWayOut)) return fix;
  fix.resize(fix.size() - kSbxRunsWayOut.size());
  return fix + ", or write image = \"host\"";
}

HostSide this_host() {
  HostSide host{.root = ::geteuid() == 0, .memory = usable_memory()};
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) host.descriptors = limit.rlim_max;
  return host;
}

Result<std::vector<std::string>> fit_host(DaemonConfig& config,
                                          const policy::RuntimeConfig& runtime,
                                          const HostSide& host) {
  std::vector<std::string> warnings;
  SBX_TRY(check_user(config, host.root, warnings));
  SBX_TRY(check_image(config, runtime));
  SBX_TRY(check_bounds(runtime));
  check_memory(config, host.memory, warnings);
  fit_descriptors(config, host.descriptors, warnings);
  return warnings;
}

Result<void> check_stored(const DaemonConfig& config, std::uint64_t stored,
                          std::uint64_t descriptors) {
  const std::uint64_t needed = needed_descriptors(config, stored);
  if (stored <= config.session_max || descriptors == 0 || needed <= descriptors) return {};
  return host_lacks(
      {}, 0,
      fmt::format("{} sessions are stored; with max_running ({}) and max_connections ({}) they "
                  "need about {} descriptors, and this process may have {}",
                  stored, config.max_running, config.max_connections, needed, descriptors),
      fmt::format("allow at least {} where this is started from: ulimit -n, or LimitNOFILE= of the "
                  "unit",
                  needed));
}

}  // namespace sbx::daemon
