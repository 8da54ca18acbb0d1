// /v1/info: what this daemon offers, as JSON. What a model or a person is told is made from it.
// Stage: daemon.
#pragma once

#include <string>
#include <vector>

#include "runtime/daemon/config.h"
#include "runtime/daemon/run_request.h"
#include "runtime/plan/image.h"
#include "runtime/policy/layers.h"

namespace sbx::daemon {

struct InfoSource {
  std::string version;
  const DaemonConfig* config = nullptr;
  const RequestRules* rules = nullptr;
  std::uint64_t memory_budget = 0;
  plan::Image image;                        // as it is now
  std::vector<policy::LayerReport> layers;  // as planned for the first profile
};

// Reads the image's manifest.
[[nodiscard]] std::string info_json(const InfoSource& source);

}  // namespace sbx::daemon
