// BreakableSandbox: what Sandbox is (runtime/sandbox.cc), with doors that the product does not
// have: steps of the child that fail on demand or leave out what they protect, and the spawner's
// pid.
//
// Programs that use it link sbx_sandbox-testing, whose sbx-init honours FlatPlan::inject and
// FlatPlan::weaken (tests/support/weakened_steps.cc); the product's has no such code, so there is
// nothing to turn on there.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "runtime/run.h"
#include "runtime/sandbox.h"
#include "runtime/spawn/records.h"
#include "runtime/spawn/spawner.h"

namespace sbx::test {

// What one run does without. Sets of whole layers: tests/adversarial/layers_off.h.
struct Weakening {
  plan::StepMask failing = 0;     // steps that fail
  plan::StepMask weakened = 0;    // steps that leave out what they protect
  policy::LayerMask missing = 0;  // layers that this host is said not to have, allowed to lack
  bool shared_id = false;         // the payload has init's uid
  bool without_cgroup = false;    // no limits: only for programs that stay small by themselves
};

class BreakableSandbox {
 public:
  // `rootfs`: an image's name, or "host". SIGPIPE is ignored from here on.
  [[nodiscard]] static Result<std::unique_ptr<BreakableSandbox>> open(
      const policy::RuntimeConfig& config, const std::string& rootfs);
  BreakableSandbox(const BreakableSandbox&) = delete;
  BreakableSandbox& operator=(const BreakableSandbox&) = delete;
  ~BreakableSandbox();

  [[nodiscard]] Result<std::unique_ptr<RunInFlight>> start(const plan::Request& request,
                                                           plan::StepMask failing = 0,
                                                           RunHooks hooks = {});
  [[nodiscard]] Result<std::unique_ptr<RunInFlight>> start(const plan::Request& request,
                                                           const Weakening& weakening,
                                                           RunHooks hooks = {});
  [[nodiscard]] Result<collect::Outcome> run(const plan::Request& request,
                                             plan::StepMask failing = 0, RunHooks hooks = {});
  [[nodiscard]] Result<collect::Outcome> run(const plan::Request& request,
                                             const Weakening& weakening, RunHooks hooks = {});
  [[nodiscard]] Result<plan::Plan> plan(const plan::Request& request) const;

  [[nodiscard]] policy::Policy& policy() { return policy_; }
  [[nodiscard]] pid_t spawner_pid() const { return spawner_->pid(); }

 private:
  BreakableSandbox() = default;
  [[nodiscard]] Result<void> set_up(const policy::RuntimeConfig& config, const std::string& rootfs);

  policy::Policy policy_;
  plan::HostFacts host_;
  policy::Policy weakened_policy_;
  plan::HostFacts weakened_host_;
  std::optional<spawn::RuntimeDirectory> directory_;
  std::optional<spawn::IdPool> ids_;
  std::unique_ptr<cgroup::Driver> cgroups_;
  std::optional<spawn::Record> record_;
  std::optional<spawn::Spawner> spawner_;
};

// One turn of the event loop; waits for at most `patience`.
void turn(Run& run, std::chrono::milliseconds patience);
// Turns until the run is done; false when it was not within `patience`.
[[nodiscard]] bool drive(Run& run, std::chrono::seconds patience = std::chrono::seconds(30));

}  // namespace sbx::test
