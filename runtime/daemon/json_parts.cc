#include "runtime/daemon/json_parts.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "runtime/base/utf8.h"

namespace sbx::daemon {

std::string json_string(std::string_view text) {
  std::string clean;
  (void)append_replacing(clean, text);
  return nlohmann::json(std::move(clean)).dump();
}

std::string limits_json(const policy::Limits& limits) {
  std::string json;
  for (const policy::LimitField& field : policy::limit_fields()) {
    json += fmt::format("{}\"{}\":{}", json.empty() ? "" : ",", field.name,
                        policy::limit_json(limits, field.name));
  }
  return "{" + json + "}";
}

std::string layers_json(const std::vector<policy::LayerReport>& layers) {
  std::string json;
  for (const policy::LayerReport& layer : layers) {
    json +=
        fmt::format("{}{{\"name\":\"{}\",\"state\":\"{}\",\"detail\":{}}}", json.empty() ? "" : ",",
                    layer.name, layer_state_name(layer.state), json_string(layer.detail));
  }
  return "[" + json + "]";
}

}  // namespace sbx::daemon
