#include "agentd/providers/json_access.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace agentd::providers {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

const Json* member(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

std::string text_of(const Json* json) {
  return json != nullptr && json->is_string() ? json->get<std::string>() : std::string();
}

std::int64_t number_of(const Json* json) {
  constexpr std::int64_t kMost = 1'000'000'000'000;
  if (json == nullptr || !json->is_number_integer()) return 0;
  if (json->is_number_unsigned()) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(json->get<std::uint64_t>(), kMost));
  }
  return std::clamp(json->get<std::int64_t>(), -kMost, kMost);
}

std::int64_t count_of(const Json* json) {
  return json != nullptr && json->is_number_integer() ? number_of(json) : -1;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace agentd::providers
