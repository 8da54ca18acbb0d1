// RunStep: one run in the sandbox with its reservation. Service: agentd; used by both drivers.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agentd/loop/machine.h"
#include "agentd/loop/services.h"
#include "agentd/loop/spending.h"
#include "agentd/sandbox/sandbox.h"
#include "http/async/cancellation.h"
#include "http/async/task.h"

namespace agentd::loop {

struct Ran {
  sandbox::RunResult result{};
  double seconds = 0;
  // The ceiling that made the run's time limit lower than usual, when that limit ended it.
  std::optional<Ceiling> cut_by{};
};

struct NotRun {
  Event event{};
  std::string detail{};  // with the fix
  std::string fix{};
  double seconds = 0;
  bool cut = false;  // it may have begun, and was ended with the request's time
};

using LearnOutcome = std::variant<sandbox::SharedInfo, NotRun>;
using RunStepOutcome = std::variant<Ran, NotRun>;

class RunStep {
 public:
  // All are borrowed and outlive it.
  RunStep(const Services& services, const Submission& submission, Spending& spending,
          const sbx::async::Cancellation& stop)
      : services_(services), submission_(submission), spending_(spending), stop_(stop) {}

  // What the sandbox offers, asked now, if it takes `files`; its `wall_seconds` are those that a
  // run of this request would be given. The event of NotRun: kSandboxFailed, or, with stop raised,
  // kCancelled.
  [[nodiscard]] sbx::async::Task<LearnOutcome> learn(const std::vector<record::RequestFile>& files);

  // Reserves, runs, settles. The event of NotRun: kSandboxFailed, kCeilingReached, kLedgerFailed,
  // or, with stop raised, kCancelled.
  [[nodiscard]] sbx::async::Task<RunStepOutcome> run(std::string language, std::string code);

 private:
  [[nodiscard]] NotRun give_up(RunPlan plan, const sandbox::SandboxFailure& failure,
                               double seconds);

  const Services& services_;
  const Submission& submission_;
  Spending& spending_;
  const sbx::async::Cancellation& stop_;
};

}  // namespace agentd::loop
