#include "runtime/sandbox.h"

#include <signal.h>

#include <cerrno>
#include <utility>

#include "runtime/base/deadline.h"
#include "runtime/base/sys.h"
#include "runtime/cgroup/driver.h"
#include "runtime/plan/plan.h"
#include "runtime/run.h"
#include "runtime/spawn/records.h"
#include "runtime/spawn/spawner.h"

namespace sbx {
namespace {

// Payloads that close their stdin must not end us, nor a file that is over the caller's own limit:
// write(2) says both. What the program around us chose is kept.
void ignore_signals_of_writing() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    struct sigaction current{};
    if (::sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
      (void)::signal(signal, SIG_IGN);
    }
  }
}

bool group_is_dead(std::string_view group, void* directory) {
  return static_cast<const spawn::RuntimeDirectory*>(directory)->is_dead_group(group);
}

}  // namespace

struct Sandbox::State {
  policy::Policy policy;
  policy::RuntimeConfig config;
  plan::HostFacts host;
  std::optional<spawn::RuntimeDirectory> directory;
  std::optional<spawn::IdPool> ids;
  std::unique_ptr<cgroup::Driver> cgroups;
  std::optional<spawn::Record> spawner_record;  // names the spawner's leaf, where it has one
  std::optional<spawn::Spawner> spawner;

  ~State() {
    spawner.reset();
    if (cgroups && spawner_record)
      cgroups->release_spawner(directory->group_name(spawner_record->id()));
  }

  // Everything that must come before a process: facts, ceilings, the cgroup driver.
  [[nodiscard]] Result<void> prepare(const SandboxOptions& options);
  [[nodiscard]] Result<void> find_image(const SandboxOptions& options);
  [[nodiscard]] Result<void> choose_cgroups(bool for_another);
  [[nodiscard]] Result<void> begin_spawner(bool single_run);
  // As the user who does the runs: his directory, and the spawner's leaf with its record.
  [[nodiscard]] Result<void> settle();
  [[nodiscard]] RunEnvironment environment(const policy::Policy& of_run);
  [[nodiscard]] Result<Swept> sweep();
  bool swept = false;
};

Result<void> Sandbox::State::choose_cgroups(bool for_another) {
  cgroup::DriverOptions options;
  options.parent = config.cgroup_parent;
  options.owner_uid = host.host_uid;
  options.owner_gid = host.host_gid;
  options.hand_over = for_another;
  auto driver = cgroup::choose_driver(options);
  if (driver) {
    cgroups = *std::move(driver);
    host.cgroup_detail = cgroups->detail();
    host.cgroup_v2 = cgroups->name() == "v2";
    host.swap_controlled = cgroups->swap_controlled();
    return {};
  }
  const bool allowed = (policy.allow_missing & policy::layer_bit(policy::Layer::kCgroup)) != 0;
  if (!allowed) return unexpected(std::move(driver).error());
  return {};
}

Result<void> Sandbox::State::begin_spawner(bool single_run) {
  spawn::SpawnerOptions options = spawner_options(host);
  options.single_run = single_run;
  options.refill_net_namespaces = !single_run;
  const bool isolated = policy.limits.network == policy::NetworkMode::kNone;
  if (single_run && !isolated) options.ready_net_namespaces = 0;
  SBX_ASSIGN(spawner, spawn::Spawner::begin(options));
  return {};
}

Result<void> Sandbox::State::settle() {
  SBX_ASSIGN(directory, spawn::RuntimeDirectory::open(config.runtime_dir));
  ids.emplace(*directory);
  if (!cgroups || !cgroups->has_spawner_leaf()) return {};
  SBX_ASSIGN(spawner_record, spawn::Record::create(*directory, spawn::new_run_id()));
  return cgroups->adopt_spawner(spawner->pid(), directory->group_name(spawner_record->id()));
}

// What dead owners left: their groups first, then the records that name them.
Result<Sandbox::Swept> Sandbox::State::sweep() {
  Swept found;
  if (cgroups) {
    // An error keeps the records, for the next sweep to try again.
    SBX_ASSIGN(found.groups, cgroups->sweep(group_is_dead, &*directory));
  }
  found.runs = directory->remove_dead_records();
  return found;
}

RunEnvironment Sandbox::State::environment(const policy::Policy& of_run) {
  return {&*spawner, cgroups.get(), &*directory, &*ids, &host, &of_run};
}

Result<void> Sandbox::State::prepare(const SandboxOptions& options) {
  policy = options.policy;
  config = options.config;
  SBX_TRY(sys::check_own_proc());
  SBX_TRY(plan::check_devices());
  host = plan::read_host_facts(config, policy.allow_missing);
  if (options.handover) plan::serve_as(host, options.handover->uid, options.handover->gid, config);
  const policy::HostBounds bounds = plan::bounds_of_host(host);
  policy::lower_to_ceilings(policy.limits, config, bounds, options.asked_limits);
  SBX_TRY(policy::check_ceilings(policy.limits, config, bounds));
  return choose_cgroups(options.handover.has_value());
}

Result<void> Sandbox::State::find_image(const SandboxOptions& options) {
  SBX_ASSIGN(host.image, plan::find_image(options.rootfs, config));
  return {};
}

Result<Sandbox> Sandbox::open(SandboxOptions options) {
  auto state = std::make_unique<State>();
  SBX_TRY(state->prepare(options));
  ignore_signals_of_writing();
  SBX_TRY(state->begin_spawner(options.single_run));
  SBX_TRY(state->find_image(options));  // beside the spawner's own set-up
  SBX_TRY(state->spawner->map_ids());
  if (options.handover) SBX_TRY(options.handover->become());
  SBX_TRY(state->settle());
  return Sandbox(std::move(state));
}

Result<std::string> Sandbox::explain(SandboxOptions options, const plan::Request& request) {
  State state;
  SBX_TRY(state.prepare(options));
  SBX_TRY(state.find_image(options));
  SBX_TRY(spawn::RuntimeDirectory::check(state.config.runtime_dir));
  SBX_ASSIGN(const plan::Plan plan, plan::make_plan(state.policy, request, state.host));
  return plan::plan_text(plan);
}

Sandbox::Sandbox(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sandbox::Sandbox(Sandbox&&) noexcept = default;
Sandbox& Sandbox::operator=(Sandbox&&) noexcept = default;
Sandbox::~Sandbox() = default;

Result<std::unique_ptr<Run>> Sandbox::start(const plan::Request& request, RunHooks hooks) {
  SBX_ASSIGN(std::unique_ptr<Run> run,
             RunInFlight::start(state_->environment(state_->policy), request, std::move(hooks)));
  // Once, when the first run is under way: what the dead left is in nobody's way before.
  if (!std::exchange(state_->swept, true)) (void)state_->sweep();
  return run;
}

Result<std::unique_ptr<Run>> Sandbox::start(const policy::Policy& policy, plan::Request request,
                                            RunHooks hooks) {
  SBX_TRY(
      policy::check_ceilings(policy.limits, state_->config, plan::bounds_of_host(state_->host)));
  SBX_TRY(plan::check_devices());  // as they are now, like the image
  SBX_ASSIGN(state_->host.image, plan::find_image(state_->host.image.name, state_->config));
  if (state_->host.hard_core == 0) state_->host.core_is_piped = plan::core_pattern_is_piped();
  SBX_ASSIGN(std::unique_ptr<Run> run,
             RunInFlight::start(state_->environment(policy), std::move(request), std::move(hooks)));
  return run;
}

Result<std::vector<policy::LayerReport>> Sandbox::check(const policy::Policy& policy,
                                                        const plan::Request& request) const {
  SBX_TRY(
      policy::check_ceilings(policy.limits, state_->config, plan::bounds_of_host(state_->host)));
  SBX_ASSIGN(plan::Plan plan, plan::make_plan(policy, request, state_->host));
  return std::move(plan.layers);
}

Result<Sandbox::Swept> Sandbox::sweep() {
  return state_->sweep();
}

Result<SessionId> Sandbox::lease_session_id(std::uint32_t wanted) const {
  SBX_ASSIGN(spawn::IdLease lease,
             spawn::lease_session_id(*state_->directory, state_->host.id_count, wanted));
  return SessionId{lease.index, std::move(lease.lock)};
}

pid_t Sandbox::spawner_pid() const {
  return state_->spawner->pid();
}

Result<UniqueFd> Sandbox::ask_spawner() {
  return state_->spawner->ask();
}

void Sandbox::note_spawner_silence(bool silent) {
  state_->spawner->note_silence(silent);
}

Result<void> Sandbox::check_image() const {
  SBX_TRY(plan::find_image(state_->host.image.name, state_->config));
  return {};
}

Result<void> Sandbox::check_records() const {
  return state_->directory->check_there();
}

Result<collect::Outcome> Sandbox::run(const plan::Request& request, RunHooks hooks) {
  SBX_ASSIGN(const std::unique_ptr<Run> run, start(request, std::move(hooks)));
  return finish(*run);
}

Result<collect::Outcome> Sandbox::finish(Run& run) {
  while (!run.done()) {
    std::vector<pollfd> fds = run.interest();
    const int ready = ::poll(fds.data(), fds.size(), poll_timeout(run.next_deadline()));
    if (ready < 0 && errno != EINTR) return sys_error("poll");
    if (ready < 0) {
      for (pollfd& entry : fds) entry.revents = 0;
    }
    run.step(fds);
  }
  return run.take_outcome();
}

}  // namespace sbx
