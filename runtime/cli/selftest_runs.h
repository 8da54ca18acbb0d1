// The runs of selftest that are judged as a whole, several at a time, with what is seen of them
// from outside. Stage: edge (sbx-run).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cli/selftest_ground.h"
#include "runtime/cli/selftest_run_cases.h"
#include "runtime/plan/request.h"
#include "runtime/policy/config.h"
#include "runtime/sandbox.h"

namespace sbx::cli {

// sbx-probe as a program: files below /input are executable. `mark` is a further word, which makes
// the run's processes known in /proc.
[[nodiscard]] plan::Request probe_request(std::string_view act, std::string_view argument,
                                          std::string_view mark = {});

// A case without one of the layers that it is about is not run: what it takes, nothing would stop.
struct RunCaseResult {
  const RunCase* attack = nullptr;
  CaseState state = CaseState::kFail;
  std::string inside, control;
};
// The most that a run may have, by the configuration and by this host.
struct Ceilings {
  policy::RuntimeConfig config;
  policy::HostBounds host;

  void lower(policy::Limits& limits) const { policy::lower_to_ceilings(limits, config, host, {}); }
  [[nodiscard]] bool allow(const policy::Limits& limits) const {
    return policy::check_ceilings(limits, config, host).has_value();
  }
};
// Blocking. `policy`: within the ceilings. What a case itself sets is not lowered to them: such a
// case is not applicable. `missing`: missing_layers() of a run of this policy. Once
// `cancel_fd` (borrowed) is readable, the runs are cancelled and nothing is judged: empty.
[[nodiscard]] std::vector<RunCaseResult> attack_by_runs(
    Sandbox& sandbox, const policy::Policy& policy, const Ceilings& ceilings,
    const ControlGround& ground, const std::vector<std::string>& missing, int cancel_fd);

// Whether the caller wishes to stop.
[[nodiscard]] bool is_cancelled(int cancel_fd);

}  // namespace sbx::cli
