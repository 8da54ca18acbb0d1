// RunInFlight: one run from its request to its outcome. Internal to sandbox.cc's library.
//
// Owns, in the order of destruction: the supervision (whose end kills), the cgroup, the id, the
// record. Each is removed only when what depends on it is gone; what cannot be removed is left to
// the next start's sweep, under the record's name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cgroup/driver.h"
#include "runtime/collect/collection.h"
#include "runtime/plan/plan.h"
#include "runtime/sandbox.h"
#include "runtime/spawn/records.h"
#include "runtime/spawn/spawner.h"
#include "runtime/supervise/supervision.h"

namespace sbx {

// What a run borrows from its Sandbox, which outlives it.
struct RunEnvironment {
  spawn::Spawner* spawner = nullptr;
  cgroup::Driver* cgroups = nullptr;  // null: allowed to be missing
  const spawn::RuntimeDirectory* directory = nullptr;
  spawn::IdPool* ids = nullptr;
  const plan::HostFacts* host = nullptr;
  const policy::Policy* policy = nullptr;
  plan::StepMask inject = 0, weaken = 0;  // honoured by the testing sbx-init alone
};

// The spawner that suits a host, with this library's collector in it.
[[nodiscard]] spawn::SpawnerOptions spawner_options(const plan::HostFacts& host);

class RunInFlight final : public Run {
 public:
  // Stages policy to spawn; nothing is left behind when one fails.
  [[nodiscard]] static Result<std::unique_ptr<RunInFlight>> start(const RunEnvironment& environment,
                                                                  plan::Request request,
                                                                  RunHooks hooks);
  ~RunInFlight() override;

  [[nodiscard]] const std::vector<pollfd>& interest() override;
  [[nodiscard]] std::chrono::steady_clock::time_point next_deadline() const override;
  void step(const std::vector<pollfd>& ready) override;
  [[nodiscard]] bool done() const override { return phase_ == Phase::kDone; }
  void cancel() override;
  [[nodiscard]] collect::Outcome take_outcome() override { return std::move(outcome_); }
  [[nodiscard]] const std::string& id() const override { return id_; }

 private:
  enum class Phase { kSupervising, kCollecting, kSaving, kReleasing, kDone };

  RunInFlight(const RunEnvironment& environment, plan::Request request, RunHooks hooks);
  [[nodiscard]] Result<void> begin();
  [[nodiscard]] Result<void> make_plan();
  [[nodiscard]] Result<void> acquire();
  [[nodiscard]] Result<void> spawn();
  void begin_collection();
  [[nodiscard]] bool wants_files() const;
  void step_collection(const std::vector<pollfd>& ready);
  void begin_save();
  void fail_collection(Error error);
  [[nodiscard]] Result<UniqueFd> request_walk(spawn::Tree tree);
  void finish();
  void step_release();
  void release();
  [[nodiscard]] collect::SavedWorkspace take_saved();
  [[nodiscard]] collect::Outcome make_outcome();

  RunEnvironment environment_;
  plan::Request request_;  // the plan's fill entries point into it
  RunHooks hooks_;
  std::string id_;
  plan::Plan plan_;
  std::optional<spawn::Record> record_;
  spawn::IdLease lease_;
  std::unique_ptr<cgroup::CgroupRun> cgroup_;
  std::unique_ptr<supervise::Supervision> supervision_;
  std::optional<supervise::Ending> ending_;
  UniqueFd control_;  // of the spawner, which walks /output and /work for us
  std::unique_ptr<collect::Collection> collection_;
  std::optional<Error> collect_failure_, save_failure_;
  std::chrono::steady_clock::time_point collect_started_, collect_deadline_;
  std::chrono::steady_clock::time_point next_removal_, removal_deadline_;
  std::chrono::milliseconds removal_pause_{1};
  Phase phase_ = Phase::kSupervising;
  std::vector<pollfd> interest_;
  collect::Outcome outcome_;
};

}  // namespace sbx
