#include "tests/integration/breakable_sandbox.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>

namespace sbx::test {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Result<std::unique_ptr<BreakableSandbox>> BreakableSandbox::open(
    const policy::RuntimeConfig& config, const std::string& rootfs) {
  (void)::signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<BreakableSandbox> sandbox(new BreakableSandbox);
  SBX_TRY(sandbox->set_up(config, rootfs));
  return sandbox;
}

Result<void> BreakableSandbox::set_up(const policy::RuntimeConfig& config,
                                      const std::string& rootfs) {
  SBX_ASSIGN(policy_, policy::load_policy("default"));
  host_ = plan::read_host_facts(config, ~policy::LayerMask{0});
  SBX_ASSIGN(host_.image, plan::find_image(rootfs, config));
  SBX_ASSIGN(directory_, spawn::RuntimeDirectory::open(config.runtime_dir));
  cgroup::DriverOptions options;
  options.parent = config.cgroup_parent;
  options.owner_uid = host_.host_uid;
  options.owner_gid = host_.host_gid;
  SBX_ASSIGN(cgroups_, cgroup::choose_driver(options));
  host_.cgroup_detail = cgroups_->detail();
  host_.cgroup_v2 = cgroups_->name() == "v2";
  host_.swap_controlled = cgroups_->swap_controlled();
  SBX_ASSIGN(record_, spawn::Record::create(*directory_, spawn::new_run_id()));
  SBX_ASSIGN(spawner_, spawn::Spawner::start(spawner_options(host_)));
  return cgroups_->adopt_spawner(spawner_->pid(), record_->id());
}

BreakableSandbox::~BreakableSandbox() {
  spawner_.reset();
  if (cgroups_ && record_) cgroups_->release_spawner(record_->id());
}

Result<std::unique_ptr<RunInFlight>> BreakableSandbox::start(const plan::Request& request,
                                                             plan::StepMask failing,
                                                             RunHooks hooks) {
  Weakening weakening;
  weakening.failing = failing;
  return start(request, weakening, std::move(hooks));
}

// The environment is read while the run starts; afterwards only what is ours as long as we live.
Result<std::unique_ptr<RunInFlight>> BreakableSandbox::start(const plan::Request& request,
                                                             const Weakening& weakening,
                                                             RunHooks hooks) {
  weakened_host_ = host_;
  weakened_policy_ = policy_;
  weakened_host_.missing |= weakening.missing;
  weakened_policy_.allow_missing |= weakening.missing;
  if (weakening.shared_id) {
    weakened_host_.ids = plan::IdMode::kSingle;
    weakened_host_.id_count = 1;
  }
  if (!ids_) ids_.emplace(*directory_);
  RunEnvironment environment{&*spawner_, cgroups_.get(),  &*directory_,
                             &*ids_,     &weakened_host_, &weakened_policy_};
  if (weakening.without_cgroup) environment.cgroups = nullptr;
  environment.inject = weakening.failing;
  environment.weaken = weakening.weakened;
  return RunInFlight::start(environment, request, std::move(hooks));
}

Result<collect::Outcome> BreakableSandbox::run(const plan::Request& request, plan::StepMask failing,
                                               RunHooks hooks) {
  Weakening weakening;
  weakening.failing = failing;
  return run(request, weakening, std::move(hooks));
}

Result<collect::Outcome> BreakableSandbox::run(const plan::Request& request,
                                               const Weakening& weakening, RunHooks hooks) {
  SBX_ASSIGN(const auto run, start(request, weakening, std::move(hooks)));
  if (!drive(*run)) return invalid("the run did not end");
  return run->take_outcome();
}

Result<plan::Plan> BreakableSandbox::plan(const plan::Request& request) const {
  return plan::make_plan(policy_, request, host_);
}

void turn(Run& run, std::chrono::milliseconds patience) {
  std::vector<pollfd> fds = run.interest();
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(run.next_deadline() - Clock::now());
  const auto wait = std::clamp(left, std::chrono::milliseconds(0), patience);
  (void)::poll(fds.data(), fds.size(), static_cast<int>(wait.count()));
  run.step(fds);
}

bool drive(Run& run, std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience;
  while (!run.done() && Clock::now() < deadline) turn(run, std::chrono::milliseconds(1000));
  return run.done();
}

}  // namespace sbx::test
