#include "agentd/render/json_view.h"

#include <nlohmann/json.hpp>

namespace agentd::render {

using Json = nlohmann::ordered_json;

const Json& member(const Json& json, const char* name) {
  static const Json kNone;
  if (!json.is_object()) return kNone;
  const auto found = json.find(name);
  return found == json.end() ? kNone : *found;
}

std::string text_at(const Json& json, const char* name) {
  const Json& found = member(json, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

double number_at(const Json& json, const char* name) {
  const Json& found = member(json, name);
  return found.is_number() ? found.get<double>() : 0;
}

bool flag_at(const Json& json, const char* name) {
  const Json& found = member(json, name);
  return found.is_boolean() && found.get<bool>();
}

}  // namespace agentd::render
