// BreakableSandbox: what Sandbox is (runtime/sandbox.cc), with two doors that the product does not
// have: steps of the child that fail on demand, and the spawner's pid.
//
// Programs that use it link sbx_sandbox-testing, whose sbx-init honours FlatPlan::inject; the
// product's has no such code, so there is nothing to turn on there.
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
  [[nodiscard]] Result<collect::Outcome> run(const plan::Request& request,
                                             plan::StepMask failing = 0, RunHooks hooks = {});
  [[nodiscard]] Result<plan::Plan> plan(const plan::Request& request) const;

  [[nodiscard]] policy::Policy& policy() { return policy_; }
  [[nodiscard]] pid_t spawner_pid() const { return spawner_->pid(); }

 private:
  BreakableSandbox() = default;
  [[nodiscard]] Result<void> set_up(const policy::RuntimeConfig& config, const std::string& rootfs);

  policy::Policy policy_;
  plan::HostFacts host_;
  std::optional<spawn::RuntimeDirectory> directory_;
  std::unique_ptr<cgroup::Driver> cgroups_;
  std::optional<spawn::Record> record_;
  std::optional<spawn::Spawner> spawner_;
};

// One turn of the event loop; waits for at most `patience`.
void turn(Run& run, std::chrono::milliseconds patience);
// Turns until the run is done; false when it was not within `patience`.
[[nodiscard]] bool drive(Run& run, std::chrono::seconds patience = std::chrono::seconds(30));

}  // namespace sbx::test
