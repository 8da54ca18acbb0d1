#include "runtime/daemon/startup.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/own_limits.h"
#include "runtime/base/scope_exit.h"
#include "runtime/daemon/audit_event.h"
#include "runtime/daemon/config_check.h"
#include "runtime/daemon/host_memory.h"
#include "runtime/plan/host_facts.h"
#include "runtime/policy/layers.h"

namespace sbx::daemon {
namespace {

Result<policy::LayerMask> layer_mask(const std::vector<std::string>& names) {
  policy::LayerMask mask = 0;
  for (const std::string& name : names) {
    const auto layer = policy::layer_from_name(name);
    if (!layer) return invalid("unknown layer " + name);  // the parser has checked it
    mask |= policy::layer_bit(*layer);
  }
  return mask;
}

Result<std::vector<policy::Policy>> load_profiles(const DaemonConfig& config) {
  std::vector<std::string> names = policy::shipped_profiles();
  const auto first = std::find(names.begin(), names.end(), "default");
  if (first != names.end()) std::rotate(names.begin(), first, first + 1);
  const std::size_t shipped = names.size();
  names.insert(names.end(), config.profiles.begin(), config.profiles.end());
  SBX_ASSIGN(const policy::LayerMask missing, layer_mask(config.allow_missing));
  std::vector<policy::Policy> profiles;
  for (const std::string& name : names) {
    const auto failed = [&](Error error) {
      if (profiles.size() < shipped) return error;
      return at_key(config, fmt::format("profiles[{}]", profiles.size() - shipped),
                    std::move(error));
    };
    auto profile = policy::load_policy(name);
    if (!profile) return failed(std::move(profile).error());
    const bool twice = std::any_of(profiles.begin(), profiles.end(), [&](const auto& other) {
      return other.profile == profile->profile;
    });
    if (twice && profiles.size() >= shipped) {
      return failed(
          invalid(fmt::format("{}: there is a profile '{}' already", name, profile->profile),
                  "give it another name"));
    }
    profile->allow_missing = missing;
    profiles.push_back(*std::move(profile));
  }
  return profiles;
}

Result<std::vector<http::Listener>> open_listeners(const Places& places,
                                                   const std::optional<ServiceUser>& user) {
  std::vector<http::Listener> listeners;
  SBX_ASSIGN(std::vector<UniqueFd> passed, http::systemd_descriptors());
  for (UniqueFd& fd : passed) {
    SBX_ASSIGN(http::Listener listener, http::Listener::adopt(std::move(fd)));
    // SECURITY: who a peer is, the kernel tells for Unix sockets only.
    if (!listener.is_unix()) return invalid("sbxd listens on Unix sockets only", "ListenStream=/…");
    listeners.push_back(std::move(listener));
  }
  if (!listeners.empty()) return listeners;
  if (places.socket.empty()) {
    return invalid("there is no XDG_RUNTIME_DIR for a socket", "give --socket PATH");
  }
  http::UnixSocketOptions options;
  options.path = places.socket;
  if (user) {
    options.mode = 0660;
    options.group = user->gid;
  }
  SBX_ASSIGN(http::Listener listener, http::Listener::unix_socket(options));
  listeners.push_back(std::move(listener));
  return listeners;
}

Result<Sandbox> open_sandbox(const Configuration& configuration, const Places& places,
                             const std::optional<ServiceUser>& user) {
  SandboxOptions options;
  options.policy = configuration.profiles.front();
  options.config = configuration.runtime;
  options.config.runtime_dir = places.runtime_dir;
  options.rootfs = configuration.daemon.image;
  if (user) {
    options.handover = Handover{user->uid, user->gid, [user] { return give_up_privileges(user); }};
  }
  SBX_ASSIGN(Sandbox sandbox, Sandbox::open(std::move(options)));
  if (!user) SBX_TRY(give_up_privileges(std::nullopt));
  return sandbox;
}

// What fails in the spawner's set-up, or on this host at all, is told by the first run: better now
// than to a client.
Result<void> prove(Sandbox& sandbox, const RequestRules& rules) {
  policy::Policy policy = rules.profiles.front();
  rules.ceilings.apply(policy.limits);
  plan::Request request;
  request.argv = {"/bin/true"};
  SBX_ASSIGN(const std::unique_ptr<Run> run, sandbox.start(policy, std::move(request), {}));
  SBX_ASSIGN(const collect::Outcome outcome, Sandbox::finish(*run));
  // Below a ceiling of a second a busy host may not come to its end: it ran.
  if (outcome.ok() || outcome.status == collect::Status::kTimeout) return {};
  Error error;
  error.code = ErrorCode::kHost;
  error.stage = "start";
  error.operation = "a first run of /bin/true";
  error.detail = outcome.error
                     ? fmt::format("{}: {}", outcome.error->step, outcome.error->detail)
                     : fmt::format("it ended with status {}", status_name(outcome.status));
  if (outcome.error) {
    error.sys_errno = outcome.error->sys_errno;
    error.fix = outcome.error->fix;
  }
  return error;
}

// Their records are gone: what the disk refuses is kept, and tried again by the service.
void note_reaped(AuditLog& audit, const Sandbox::Swept& swept) {
  for (const std::string& run : swept.runs) {
    if (auto written = audit.append(reaped_event(run)); !written) {
      log::error("audit", {{"error", to_string(written.error())}});
    }
  }
}

}  // namespace

Result<Configuration> load_configuration(const Arguments& arguments) {
  Configuration configuration;
  SBX_ASSIGN(configuration.runtime, policy::load_runtime_config());
  SBX_ASSIGN(configuration.daemon, load_daemon_config(arguments.config));
  // Started by root it does not stay root, to whom HOME and XDG_DATA_HOME belong.
  if (::geteuid() == 0 && configuration.runtime.image_dir.empty()) {
    configuration.runtime.image_dir = plan::kSystemImages;
  }
  if (!arguments.socket.empty()) configuration.daemon.socket = arguments.socket;
  if (!arguments.state_dir.empty()) configuration.daemon.state_dir = arguments.state_dir;
  SBX_ASSIGN(configuration.profiles, load_profiles(configuration.daemon));
  SBX_ASSIGN(configuration.warnings,
             fit_host(configuration.daemon, configuration.runtime, this_host()));
  return configuration;
}

Result<Started> start_up(const Arguments& arguments) {
  SBX_ASSIGN(Configuration configuration, load_configuration(arguments));
  const DaemonConfig& config = configuration.daemon;
  log::set_level(log::level_from_name(config.log_level).value_or(log::Level::kInfo));
  raise_soft_limits();  // a run takes about 16 descriptors: with few, fewer are possible at once
  SBX_TRY(check_own_limits(OwnWork::kDaemon));
  for (const std::string& warning : configuration.warnings) {
    log::warning("configuration", {{"what", warning}});
  }
  const bool root = ::geteuid() == 0;
  std::optional<ServiceUser> user;
  if (root) {
    SBX_ASSIGN(user, find_service_user(config.user));
  }
  SBX_ASSIGN(const Places places, choose_places(config, configuration.runtime, root));
  FreshDirectories fresh;  // outlives what is in them: a start that fails leaves nothing new
  // The socket first: of two that start at once, the one that does not get it makes, and takes
  // back, nothing of what the other needs.
  SBX_TRY(make_place_of_socket(places, user, fresh));
  SBX_ASSIGN(std::vector<http::Listener> listeners, open_listeners(places, user));
  SBX_TRY(make_places_of_state(places, user, fresh));
  // While the socket can still be taken back from a directory of root's.
  SBX_TRY(SessionStore::refuse_in_use(places.sessions_dir()));
  SBX_TRY(AuditLog::refuse_unusable(places.audit_dir(), user ? user->uid : ::geteuid()));
  // In whole MiB, as refusals will name it.
  const auto whole = [](std::uint64_t bytes) { return bytes / policy::kMiB * policy::kMiB; };
  const std::uint64_t budget = whole(budget_bytes(config.memory_budget, usable_memory()));
  const plan::HostFacts host = plan::read_host_facts(configuration.runtime, 0);

  SBX_ASSIGN(Sandbox sandbox, open_sandbox(configuration, places, user));
  // From here on without privileges.
  policy::HostBounds bounds = plan::bounds_of_host(host);
  bounds.memory = whole(std::min(budget, host.memory));
  RequestRules rules{configuration.profiles,
                     effective_ceilings(config.ceilings, configuration.runtime, bounds)};
  SBX_TRY(prove(sandbox, rules));  // before anything is written
  SBX_ASSIGN(SessionStore sessions, SessionStore::open(places.sessions_dir()));
  ScopeExit take_back([&] { sessions.take_back(); });
  SBX_ASSIGN(const std::uint64_t stored, sessions.count());
  SBX_TRY(check_stored(config, stored, this_host().descriptors));
  SBX_ASSIGN(AuditLog audit, AuditLog::open(places.audit_dir()));
  ScopeExit take_audit_back([&] { audit.take_back(); });
  if (!audit.found().empty()) log::warning("audit file", {{"found", audit.found()}});
  SBX_ASSIGN(Sandbox::Swept swept, sandbox.sweep());
  note_reaped(audit, swept);
  take_audit_back.release();
  take_back.release();
  fresh.keep();
  return Started{std::move(configuration), places,           std::move(listeners),
                 std::move(sandbox),       std::move(audit), std::move(sessions),
                 std::move(rules),         budget,           std::move(swept)};
}

}  // namespace sbx::daemon
