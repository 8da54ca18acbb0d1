// The checks of `sbx-run doctor`: answers of a Host to states, each with its fix. Stage: edge.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/cli/host.h"
#include "runtime/policy/config.h"

namespace sbx::cli {

// kUntried: the host could have it; there was no process or no memory to see whether it does.
enum class CheckState { kOk, kDegraded, kMissing, kUntried };
[[nodiscard]] std::string_view check_state_name(CheckState state);

struct Check {
  std::string name;
  bool required = true;  // a run is refused without it, unless --allow-missing names its layer
  CheckState state = CheckState::kOk;
  std::string detail;
  std::string fix;  // one line; empty when ok
};

struct DoctorOptions {
  policy::RuntimeConfig config;
  std::string image = "default";  // or "host"
};

// Of the host alone.
[[nodiscard]] std::vector<Check> host_checks(Host& host, const policy::RuntimeConfig& config);
// These, the image, and last all of it together: a run.
[[nodiscard]] std::vector<Check> run_checks(Host& host, const DoctorOptions& options);
// True when every required check is ok.
[[nodiscard]] bool all_required_hold(const std::vector<Check>& checks);
// True when a required check is missing or degraded: one that was not tried may yet be ok.
[[nodiscard]] bool runs_are_refused(const std::vector<Check>& checks);

}  // namespace sbx::cli
