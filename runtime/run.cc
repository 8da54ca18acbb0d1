#include "runtime/run.h"

#include <algorithm>
#include <cerrno>

#include "runtime/base/own_limits.h"
#include "runtime/base/sys.h"
#include "runtime/collect/make_outcome.h"
#include "runtime/workspace/walker.h"

namespace sbx {
namespace {

using Clock = std::chrono::steady_clock;

// The walk is bounded in entries and bytes; this is for a walker that hangs.
constexpr std::chrono::seconds kCollectPatience{60};
// A v1 group is empty within milliseconds of the last process; a v2 one tells.
constexpr std::chrono::milliseconds kRemovePatience{2000};
constexpr std::chrono::milliseconds kLongestPause{16};

// Collection limits cross the spawner as a packet; the stage to the right defines its own type.
void serve_collection(int directory, int socket, const spawn::CollectRequest& request) {
  if (request.tree == spawn::Tree::kWork) return workspace::serve_walk(directory, socket);
  collect::serve_collection(
      directory, socket,
      {request.files, request.file_bytes, request.files_bytes, request.file_depth});
}

bool is_ready(const std::vector<pollfd>& ready, int fd) {
  return fd >= 0 && std::any_of(ready.begin(), ready.end(), [&](const pollfd& entry) {
           return entry.fd == fd && entry.revents != 0;
         });
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
  if (auto begun = run->begin(); !begun) return name_scarcity(std::move(begun).error());
  return run;
}

Result<void> RunInFlight::begin() {
  SBX_TRY(make_plan());
  SBX_TRY(acquire());
  return spawn();
}

Result<void> RunInFlight::make_plan() {
  if (hooks_.workspace != nullptr) request_.workspace = hooks_.workspace->size();
  SBX_ASSIGN(plan_, plan::make_plan(*environment_.policy, request_, *environment_.host));
  return {};
}

// The record first: whatever is made after it can be found by its name.
Result<void> RunInFlight::acquire() {
  SBX_ASSIGN(record_, spawn::Record::create(*environment_.directory, id_));
  if (hooks_.workspace == nullptr) {
    SBX_ASSIGN(lease_, environment_.ids->take(plan_.id_count));
  }
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
  facts.payload_id = hooks_.workspace != nullptr ? hooks_.workspace->payload_id() : lease_.index;
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
  if (hooks_.workspace != nullptr) {
    options.fill_rest = [workspace = hooks_.workspace](UniqueFd pipe) {
      workspace->fill(std::move(pipe));
    };
  }
  supervision_ = std::make_unique<supervise::Supervision>(std::move(child), std::move(options));
  return {};
}

RunInFlight::~RunInFlight() {
  supervision_.reset();  // closes the lifeline: everything inside dies
  if (cgroup_) {
    (void)cgroup_->kill();            // v2; on v1 init does it
    (void)cgroup_->lift_cpu_limit();  // the sooner; remove() waits for it
  }
  if (cgroup_) (void)cgroup_->remove(kRemovePatience);  // release() sees what came of it
  release();
}

const std::vector<pollfd>& RunInFlight::interest() {
  interest_.clear();
  if (phase_ == Phase::kSupervising) supervision_->add_interest(interest_);
  if (phase_ == Phase::kCollecting) {
    interest_.push_back({collection_->fd(), POLLIN, 0});
    if (hooks_.cancel_fd >= 0) interest_.push_back({hooks_.cancel_fd, POLLIN, 0});
  }
  if (phase_ == Phase::kSaving) interest_.push_back({hooks_.workspace->saved_fd(), POLLIN, 0});
  return interest_;
}

Clock::time_point RunInFlight::next_deadline() const {
  if (phase_ == Phase::kSupervising) return supervision_->next_deadline();
  if (phase_ == Phase::kCollecting) {
    return collection_->busy() ? Clock::time_point::min() : collect_deadline_;
  }
  return phase_ == Phase::kReleasing ? next_removal_ : Clock::time_point::max();
}

void RunInFlight::step(const std::vector<pollfd>& ready) {
  switch (phase_) {
    case Phase::kSupervising:
      supervision_->step(ready);
      if (supervision_->ended()) begin_collection();
      return;
    case Phase::kCollecting:
      return step_collection(ready);
    case Phase::kSaving:
      if (is_ready(ready, hooks_.workspace->saved_fd())) finish();
      return;
    case Phase::kReleasing:
      if (Clock::now() >= next_removal_) step_release();
      return;
    case Phase::kDone:
      return;
  }
}

// While collecting, the program has ended by itself; what was collected so far is kept. A save goes
// on: the files are there, whoever waits for the result.
void RunInFlight::cancel() {
  if (phase_ == Phase::kSupervising) supervision_->cancel();
  if (phase_ == Phase::kCollecting) {
    ending_->cancelled = true;
    begin_save();
  }
}

bool RunInFlight::wants_files() const {
  // After a cancellation only for a caller with a place for the files: nobody waits for the result.
  const bool awaited = !ending_->cancelled || hooks_.sink;
  return hooks_.collect != collect::CollectMode::kNone && awaited && ending_->exec_reached &&
         control_ && !supervision_->output_empty();
}

// Asks for a walker; the socket over which it tells.
Result<UniqueFd> RunInFlight::request_walk(spawn::Tree tree) {
  const policy::Limits& limits = plan_.policy.limits;
  spawn::CollectRequest request;
  request.tree = tree;
  request.files = limits.files;
  request.file_depth = limits.file_depth;
  request.file_bytes = limits.file_bytes;
  request.files_bytes = limits.files_bytes;
  SBX_ASSIGN(auto sockets, sys::seqpacket_pair());
  const int theirs = sockets.second.get();
  SBX_TRY(sys::send_packet(control_.get(),
                           {reinterpret_cast<const std::uint8_t*>(&request), sizeof request},
                           {&theirs, 1}));
  return std::move(sockets.first);
}

// The first failure is the one that is told.
void RunInFlight::fail_collection(Error error) {
  if (collect_failure_) return;
  if (error.stage.empty()) error.stage = "collect";
  // Whatever it was, it is nothing the caller asked for.
  if (error.code == ErrorCode::kInvalid) error.code = ErrorCode::kInternal;
  collect_failure_ = name_scarcity(std::move(error));
}

void RunInFlight::begin_collection() {
  collect_started_ = Clock::now();
  collect_deadline_ = collect_started_ + kCollectPatience;
  ending_ = supervision_->take_ending();
  control_ = supervision_->take_control();
  if (!wants_files()) return begin_save();
  auto walker = request_walk(spawn::Tree::kOutput);
  if (!walker) {
    fail_collection(std::move(walker).error());
    return begin_save();
  }
  collect::FileSink sink;
  if (hooks_.collect == collect::CollectMode::kContent) {
    sink = hooks_.sink ? std::move(hooks_.sink) : collect::content_sink();
  }
  collection_ = std::make_unique<collect::Collection>(*std::move(walker), std::move(sink));
  phase_ = Phase::kCollecting;
}

void RunInFlight::step_collection(const std::vector<pollfd>& ready) {
  if (Clock::now() >= collect_deadline_) {
    Error error;
    error.operation = "deadline";
    error.detail = "the walk of /output did not end in time";
    fail_collection(std::move(error));
    return begin_save();
  }
  if (is_ready(ready, hooks_.cancel_fd)) return cancel();
  if (!collection_->busy() && !is_ready(ready, collection_->fd())) return;
  const auto ended = collection_->step();
  if (!ended) fail_collection(ended.error());
  if (!ended || *ended) begin_save();
}

// Whatever the verdict: a program that ran into a limit keeps what it had written. One that never
// started has left nothing, and the workspace stays as it is.
void RunInFlight::begin_save() {
  if (hooks_.workspace == nullptr || !ending_->exec_reached || !hooks_.workspace->wants_save()) {
    return finish();
  }
  auto walker = control_ ? request_walk(spawn::Tree::kWork)
                         : Result<UniqueFd>(invalid("the spawner was lost during the run"));
  if (!walker) {
    save_failure_ = name_scarcity(std::move(walker).error());
    return finish();
  }
  hooks_.workspace->save(*std::move(walker));
  phase_ = Phase::kSaving;
}

void RunInFlight::finish() {
  outcome_ = make_outcome();
  collection_.reset();
  control_.reset();
  supervision_.reset();
  phase_ = Phase::kReleasing;
  removal_deadline_ = Clock::now() + kRemovePatience;
  step_release();
}

// What has exited may keep a group busy for a moment more: looked at again, never waited for, since
// the thread is not ours alone.
void RunInFlight::step_release() {
  const auto removed = cgroup_ ? cgroup_->remove(std::chrono::milliseconds{0}) : Result<void>{};
  const Clock::time_point now = Clock::now();
  if (!removed && removed.error().sys_errno == EBUSY && now < removal_deadline_) {
    next_removal_ = now + removal_pause_;
    removal_pause_ = std::min(removal_pause_ * 2, kLongestPause);
    return;
  }
  release();
  phase_ = Phase::kDone;
}

// The cgroup before the id (its processes have it), both before the record (which names them).
void RunInFlight::release() {
  const bool removed = !cgroup_ || cgroup_->remove(removal_pause_).has_value();
  cgroup_.reset();
  if (removed) {
    environment_.ids->give(std::move(lease_));
  } else if (record_) {
    record_->abandon();
  }
  lease_ = {};
  record_.reset();
}

// What became of the workspace. That what a run left is lost is never a success; that the tree
// could not be read into the run is the cause behind the step that failed inside. EPIPE is none: it
// says that whoever read had ended before, by a limit, a cancellation or a failure of its own.
collect::SavedWorkspace RunInFlight::take_saved() {
  auto failure = hooks_.workspace->fill_failure();
  if (failure && failure->sys_errno != EPIPE && !ending_->exec_reached) {
    failure->stage = "workspace";
    ending_->failure = std::move(failure);
  }
  const plan::WorkspaceSize size = hooks_.workspace->size();
  collect::SavedWorkspace kept{.size = size.bytes, .inodes = size.inodes};
  if (!ending_->exec_reached) {
    kept.reason = "the program did not start";
    return kept;
  }
  auto saved = save_failure_ ? Result<collect::SavedWorkspace>(*std::move(save_failure_))
                             : hooks_.workspace->saved();
  if (saved) return *std::move(saved);
  kept.reason = to_string(saved.error());
  fail_collection(std::move(saved).error().with_context(
      "the workspace was not saved, its files are as they were before the run"));
  return kept;
}

collect::Outcome RunInFlight::make_outcome() {
  collect::OutcomeContext context;
  context.id = id_;
  context.limits = plan_.policy.limits;
  context.caller_limits = plan_.caller_limits;
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
  if (hooks_.workspace != nullptr) context.workspace = take_saved();
  context.collect_failure = collect_failure_;
  context.collect_time = Clock::now() - collect_started_;
  return collect::make_outcome(*ending_, std::move(context));
}

}  // namespace sbx
