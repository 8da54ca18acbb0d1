#include "tests/integration/breakable_sandbox.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>

namespace sbx::test {
namespace {

using Clock = std::chrono::steady_clock;

void serve_collection(int directory, int socket, const spawn::CollectRequest& request) {
  collect::serve_collection(
      directory, socket,
      {request.files, request.file_bytes, request.files_bytes, request.file_depth});
}

spawn::SpawnerOptions spawner_options(const plan::HostFacts& host) {
  spawn::SpawnerOptions options;
  options.ids = host.ids;
  options.id_count = host.id_count;
  options.host_uid = host.host_uid;
  options.host_gid = host.host_gid;
  options.sub_uid = host.sub_uid;
  options.sub_gid = host.sub_gid;
  options.collect = serve_collection;
  return options;
}

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
  const RunEnvironment environment{&*spawner_, cgroups_.get(), &*directory_,
                                   &host_,     &policy_,       failing};
  return RunInFlight::start(environment, request, std::move(hooks));
}

Result<collect::Outcome> BreakableSandbox::run(const plan::Request& request, plan::StepMask failing,
                                               RunHooks hooks) {
  SBX_ASSIGN(const auto run, start(request, failing, std::move(hooks)));
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
