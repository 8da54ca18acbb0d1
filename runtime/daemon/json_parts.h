// Parts of answers that several routes give, as JSON text. Stage: daemon. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/policy/layers.h"
#include "runtime/policy/limits.h"

namespace sbx::daemon {

// With quotes; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);
[[nodiscard]] std::string limits_json(const policy::Limits& limits);
[[nodiscard]] std::string layers_json(const std::vector<policy::LayerReport>& layers);

}  // namespace sbx::daemon
