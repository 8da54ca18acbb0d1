#include "runtime/daemon/info.h"

#include <nlohmann/json.hpp>

#include "runtime/daemon/json_parts.h"
#include "runtime/policy/language.h"

namespace sbx::daemon {
namespace {

using Json = nlohmann::ordered_json;

// "numpy 1.24.2" of the manifest, as name and version.
Json packages_json(const plan::Image& image, const std::string& key) {
  Json json = Json::object();
  for (const std::string& package : plan::image_packages(image, key)) {
    const std::size_t blank = package.find(' ');
    json[package.substr(0, blank)] =
        blank == std::string::npos ? Json(nullptr) : Json(package.substr(blank + 1));
  }
  return json;
}

Json languages_json(const plan::Image& image) {
  Json list = Json::array();
  for (const policy::Language& language : policy::languages()) {
    list.push_back({{"name", language.name},
                    {"aliases", language.aliases},
                    {"file", "/code/" + language.file},
                    {"syntax_error_pattern", language.syntax_error_pattern},
                    {"packages", packages_json(image, language.image)}});
  }
  return list;
}

Json profiles_json(const RequestRules& rules) {
  Json list = Json::array();
  for (const policy::Policy& profile : rules.profiles) {
    policy::Limits limits = profile.limits;
    rules.ceilings.apply(limits);
    list.push_back({{"name", profile.profile},
                    {"description", profile.description},
                    {"limits", Json::parse(limits_json(limits))}});
  }
  return list;
}

Json ceilings_json(const Ceilings& ceilings) {
  const Json all = Json::parse(limits_json(ceilings.most()));
  Json json = Json::object();
  for (const std::string_view name : ceilings.names()) {
    json[std::string(name)] = all[std::string(name)];
  }
  return json;
}

}  // namespace

std::string info_json(const InfoSource& source) {
  const DaemonConfig& config = *source.config;
  const Json profiles = profiles_json(*source.rules);
  const Json json{
      {"version", source.version},
      {"languages", languages_json(source.image)},
      {"image", {{"name", source.image.name}, {"digest", source.image.digest}}},
      {"profiles", profiles},
      {"limits", profiles[0]["limits"]},
      {"ceilings", ceilings_json(source.rules->ceilings)},
      {"layers", Json::parse(layers_json(source.layers))},
      {"admission",
       {{"max_running", config.max_running},
        {"max_queued", config.max_queued},
        {"max_queued_per_peer", config.max_queued_per_peer},
        {"queue_seconds", config.queue_seconds},
        {"max_connections", config.max_connections},
        {"max_connections_per_peer", config.max_connections_per_peer},
        {"memory_budget", source.memory_budget},
        {"body_budget", config.body_budget},
        {"answer_budget", config.answer_budget}}},
      {"sessions",
       {{"max", config.session_max},
        {"max_per_peer", config.session_max_per_peer},
        {"idle_seconds", config.session_idle_seconds},
        {"age_seconds", config.session_age_seconds}}},
  };
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sbx::daemon
