#include "runtime/run.h"

#include <algorithm>

#include "runtime/base/sys.h"
#include "runtime/collect/make_outcome.h"

namespace sbx {
namespace {

using Clock = std::chrono::steady_clock;

// The walk is bounded in entries and bytes; this is for a walker that hangs.
constexpr std::chrono::seconds kCollectPatience{60};
// A v1 group is empty within milliseconds of the last process; a v2 one tells.
constexpr std::chrono::milliseconds kRemovePatience{2000};

// Collection limits cross the spawner as a packet; the stage to the right defines its own type.
void serve_collection(int directory, int socket, const spawn::CollectRequest& request) {
  collect::serve_collection(
      directory, socket,
      {request.files, request.file_bytes, request.files_bytes, request.file_depth});
}

}  // namespace

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

RunInFlight::RunInFlight(const RunEnvironment& environment, plan::Request request, RunHooks hooks)
    : environment_(environment),
      request_(std::move(request)),
      hooks_(std::move(hooks)),
      id_(spawn::new_run_id()) {}

Result<std::unique_ptr<RunInFlight>> RunInFlight::start(const RunEnvironment& environment,
                                                        plan::Request request, RunHooks hooks) {
  std::unique_ptr<RunInFlight> run(
      new RunInFlight(environment, std::move(request), std::move(hooks)));
  SBX_TRY(run->make_plan());
  SBX_TRY(run->acquire());
  SBX_TRY(run->spawn());
  return run;
}

Result<void> RunInFlight::make_plan() {
  SBX_ASSIGN(plan_, plan::make_plan(*environment_.policy, request_, *environment_.host));
  return {};
}

// The record first: whatever is made after it can be found by its name.
Result<void> RunInFlight::acquire() {
  SBX_ASSIGN(record_, spawn::Record::create(*environment_.directory, id_));
  SBX_ASSIGN(lease_, spawn::lease_id(*environment_.directory, plan_.id_count));
  if (environment_.cgroups == nullptr) return {};
  const policy::Limits& limits = plan_.policy.limits;
  SBX_ASSIGN(cgroup_,
             environment_.cgroups->create(environment_.directory->group_name(id_),
                                          {limits.memory, limits.cpus_milli, limits.pids}));
  return {};
}

Result<void> RunInFlight::spawn() {
  const bool with_stdin = request_.stdin_text.has_value() || hooks_.stdin_fd >= 0;
  plan::LaunchFacts facts;
  facts.payload_id = lease_.index;
  facts.inject = environment_.inject;
  facts.weaken = environment_.weaken;
  SBX_ASSIGN(spawn::Child child,
             spawn::spawn_child(*environment_.spawner, plan_, facts, cgroup_.get(), with_stdin));
  supervise::SupervisionOptions options;
  options.plan = &plan_;
  options.stdin_text = std::move(request_.stdin_text);
  options.stdin_source = hooks_.stdin_fd;
  options.cancel = hooks_.cancel_fd;
  options.on_stdout = hooks_.on_stdout;
  options.on_stderr = hooks_.on_stderr;
  supervision_ = std::make_unique<supervise::Supervision>(std::move(child), std::move(options));
  return {};
}

RunInFlight::~RunInFlight() {
  supervision_.reset();  // closes the lifeline: everything inside dies
  release();
}

const std::vector<pollfd>& RunInFlight::interest() {
  interest_.clear();
  if (phase_ == Phase::kSupervising) supervision_->add_interest(interest_);
  if (phase_ == Phase::kCollecting) {
    interest_.push_back({collection_->fd(), POLLIN, 0});
    if (hooks_.cancel_fd >= 0) interest_.push_back({hooks_.cancel_fd, POLLIN, 0});
  }
  return interest_;
}

Clock::time_point RunInFlight::next_deadline() const {
  if (phase_ == Phase::kSupervising) return supervision_->next_deadline();
  return phase_ == Phase::kCollecting ? collect_deadline_ : Clock::time_point::max();
}

void RunInFlight::step(const std::vector<pollfd>& ready) {
  if (phase_ == Phase::kCollecting) {
    step_collection(ready);
  } else if (phase_ == Phase::kSupervising) {
    supervision_->step(ready);
    if (supervision_->ended()) begin_collection();
  }
}

// While collecting, the program has ended by itself; what was collected so far is kept.
void RunInFlight::cancel() {
  if (phase_ == Phase::kSupervising) supervision_->cancel();
  if (phase_ == Phase::kCollecting) {
    ending_->cancelled = true;
    finish();
  }
}

void RunInFlight::begin_collection() {
  collect_started_ = Clock::now();
  collect_deadline_ = collect_started_ + kCollectPatience;
  ending_ = supervision_->take_ending();
  UniqueFd control = supervision_->take_control();
  // After a cancellation only for a caller with a place for the files: nobody waits for the result.
  const bool awaited = !ending_->cancelled || hooks_.sink;
  const bool wanted = hooks_.collect != collect::CollectMode::kNone && awaited &&
                      ending_->exec_reached && control && !supervision_->output_empty();
  if (!wanted) return finish();
  const policy::Limits& limits = plan_.policy.limits;
  const spawn::CollectRequest request{limits.files, limits.file_depth, limits.file_bytes,
                                      limits.files_bytes};
  if (auto sent = sys::send_packet(
          control.get(), {reinterpret_cast<const std::uint8_t*>(&request), sizeof request}, {});
      !sent) {
    collect_failure_ = std::move(sent).error();
    return finish();
  }
  collect::FileSink sink;
  if (hooks_.collect == collect::CollectMode::kContent) {
    sink = hooks_.sink ? std::move(hooks_.sink) : collect::content_sink();
  }
  collection_ = std::make_unique<collect::Collection>(std::move(control), std::move(sink));
  phase_ = Phase::kCollecting;
}

void RunInFlight::step_collection(const std::vector<pollfd>& ready) {
  if (Clock::now() >= collect_deadline_) {
    Error error;
    error.stage = "collect";
    error.operation = "deadline";
    error.detail = "the walk of /output did not end in time";
    collect_failure_ = std::move(error);
    return finish();
  }
  const auto is_ready = [&](int fd) {
    return fd >= 0 && std::any_of(ready.begin(), ready.end(), [&](const pollfd& entry) {
             return entry.fd == fd && entry.revents != 0;
           });
  };
  if (is_ready(hooks_.cancel_fd)) return cancel();
  if (!is_ready(collection_->fd())) return;
  const auto ended = collection_->step();
  if (!ended) {
    collect_failure_ = ended.error();
    finish();
  } else if (*ended) {
    finish();
  }
}

void RunInFlight::finish() {
  outcome_ = make_outcome();
  collection_.reset();
  supervision_.reset();
  release();
  phase_ = Phase::kDone;
}

// The cgroup before the id (its processes have it), both before the record (which names them).
void RunInFlight::release() {
  if (cgroup_) {
    const auto removed = cgroup_->remove(kRemovePatience);
    if (!removed && record_) record_->abandon();
    cgroup_.reset();
  }
  lease_ = {};
  record_.reset();
}

collect::Outcome RunInFlight::make_outcome() {
  collect::OutcomeContext context;
  context.id = id_;
  context.limits = plan_.policy.limits;
  context.profile = plan_.policy.profile;
  context.language = plan_.language;
  context.image_name = plan_.image.name;
  context.image_digest = plan_.image.digest;
  context.layers = plan_.layers;
  if (const policy::Language* language = policy::find_language(plan_.language)) {
    context.missing_module_pattern = language->missing_module_pattern;
    // The manifest is read only where a note may quote it.
    if (ending_->err.total > 0) {
      context.packages = plan::image_packages(plan_.image, language->image);
    }
  }
  if (collection_) {
    context.files = std::move(collection_->files());
    context.refused = std::move(collection_->refused());
    context.collect_limits_hit = collection_->limits_hit();
  }
  context.collect_failure = collect_failure_;
  context.collect_time = Clock::now() - collect_started_;
  return collect::make_outcome(*ending_, std::move(context));
}

}  // namespace sbx
