#include "runtime/sandbox.h"

#include <signal.h>

#include <cerrno>
#include <utility>

#include "runtime/base/deadline.h"
#include "runtime/cgroup/driver.h"
#include "runtime/plan/plan.h"
#include "runtime/run.h"
#include "runtime/spawn/records.h"
#include "runtime/spawn/spawner.h"

namespace sbx {
namespace {

// Payloads that close their stdin must not end us. What the program around us chose is kept.
void ignore_broken_pipes() {
  struct sigaction current{};
  if (::sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
    (void)::signal(SIGPIPE, SIG_IGN);
  }
}

bool group_is_dead(std::string_view group, void* directory) {
  return static_cast<const spawn::RuntimeDirectory*>(directory)->is_dead_group(group);
}

}  // namespace

struct Sandbox::State {
  policy::Policy policy;
  plan::HostFacts host;
  std::optional<spawn::RuntimeDirectory> directory;
  std::unique_ptr<cgroup::Driver> cgroups;
  std::optional<spawn::Record> spawner_record;  // names the spawner's leaf
  std::optional<spawn::Spawner> spawner;

  ~State() {
    spawner.reset();
    if (cgroups && spawner_record)
      cgroups->release_spawner(directory->group_name(spawner_record->id()));
  }

  // Everything that comes before a process: facts, ceilings, image, cgroup driver.
  [[nodiscard]] Result<void> prepare(SandboxOptions options);
  [[nodiscard]] Result<void> choose_cgroups(const policy::RuntimeConfig& config);
  [[nodiscard]] Result<void> start_spawner(bool single_run);
  [[nodiscard]] RunEnvironment environment();
  // Once, when the first run is under way: what the dead left is in nobody's way before.
  void sweep_once();
  bool sweep_done = false;
};

Result<void> Sandbox::State::choose_cgroups(const policy::RuntimeConfig& config) {
  cgroup::DriverOptions options;
  options.parent = config.cgroup_parent;
  options.owner_uid = host.host_uid;
  options.owner_gid = host.host_gid;
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

Result<void> Sandbox::State::start_spawner(bool single_run) {
  SBX_ASSIGN(spawner_record, spawn::Record::create(*directory, spawn::new_run_id()));
  spawn::SpawnerOptions options = spawner_options(host);
  options.single_run = single_run;
  options.refill_net_namespaces = !single_run;
  SBX_ASSIGN(spawner, spawn::Spawner::start(options));
  if (!cgroups) return {};
  return cgroups->adopt_spawner(spawner->pid(), directory->group_name(spawner_record->id()));
}

// What dead owners left: their groups first, then the records that name them.
void Sandbox::State::sweep_once() {
  if (std::exchange(sweep_done, true)) return;
  if (cgroups) {
    const auto swept = cgroups->sweep(group_is_dead, &*directory);
    if (!swept) return;  // the records stay, for the next start to try again
  }
  (void)directory->remove_dead_records();
}

RunEnvironment Sandbox::State::environment() {
  return {&*spawner, cgroups.get(), &*directory, &host, &policy};
}

Result<void> Sandbox::State::prepare(SandboxOptions options) {
  policy = std::move(options.policy);
  host = plan::read_host_facts(options.config, policy.allow_missing);
  SBX_TRY(policy::check_ceilings(policy.limits, options.config, host.memory, host.cpus));
  SBX_ASSIGN(host.image, plan::find_image(options.rootfs, options.config));
  return choose_cgroups(options.config);
}

Result<Sandbox> Sandbox::open(SandboxOptions options) {
  auto state = std::make_unique<State>();
  const std::string runtime_directory = options.config.runtime_dir;
  const bool single_run = options.single_run;
  SBX_TRY(state->prepare(std::move(options)));
  SBX_ASSIGN(state->directory, spawn::RuntimeDirectory::open(runtime_directory));
  ignore_broken_pipes();
  SBX_TRY(state->start_spawner(single_run));
  return Sandbox(std::move(state));
}

Result<std::string> Sandbox::explain(SandboxOptions options, const plan::Request& request) {
  State state;
  SBX_TRY(state.prepare(std::move(options)));
  SBX_ASSIGN(const plan::Plan plan, plan::make_plan(state.policy, request, state.host));
  return plan::plan_text(plan);
}

Sandbox::Sandbox(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sandbox::Sandbox(Sandbox&&) noexcept = default;
Sandbox& Sandbox::operator=(Sandbox&&) noexcept = default;
Sandbox::~Sandbox() = default;

Result<std::unique_ptr<Run>> Sandbox::start(const plan::Request& request, RunHooks hooks) {
  SBX_ASSIGN(std::unique_ptr<Run> run,
             RunInFlight::start(state_->environment(), request, std::move(hooks)));
  state_->sweep_once();
  return run;
}

Result<collect::Outcome> Sandbox::run(const plan::Request& request, RunHooks hooks) {
  SBX_ASSIGN(const std::unique_ptr<Run> run, start(request, std::move(hooks)));
  while (!run->done()) {
    std::vector<pollfd> fds = run->interest();
    const int ready = ::poll(fds.data(), fds.size(), poll_timeout(run->next_deadline()));
    if (ready < 0 && errno != EINTR) return sys_error("poll");
    if (ready < 0) {
      for (pollfd& entry : fds) entry.revents = 0;
    }
    run->step(fds);
  }
  return run->take_outcome();
}

}  // namespace sbx
