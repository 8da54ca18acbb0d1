// The OpenAPI document against the routes, and against the tables that it repeats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "http/router.h"
#include "runtime/collect/outcome.h"
#include "runtime/daemon/routes.h"
#include "runtime/daemon/session_files.h"
#include "runtime/daemon/session_routes.h"
#include "runtime/policy/limits.h"

namespace sbx::daemon {
namespace {

using Json = nlohmann::json;

const Json& document() {
  static const Json json = Json::parse(openapi_text());
  return json;
}

std::set<std::string> keys(const Json& object) {
  std::set<std::string> names;
  for (const auto& item : object.items()) names.insert(item.key());
  return names;
}

std::set<std::string> limit_names() {
  std::set<std::string> names;
  for (const policy::LimitField& field : policy::limit_fields()) names.emplace(field.name);
  return names;
}

// "{path...}" of the router is "{path}" in OpenAPI.
std::string as_openapi(std::string path) {
  if (const std::size_t dots = path.find("..."); dots != std::string::npos) path.erase(dots, 3);
  return path;
}

TEST(OpenApi, HasEveryRouteAndNoOther) {
  // Handlers are not called: nothing behind these references is looked at.
  alignas(RunService) static char nowhere[sizeof(RunService)];
  alignas(InfoRoutes) static char nothing[sizeof(InfoRoutes)];
  alignas(SessionRoutes) static char no_sessions[sizeof(SessionRoutes)];
  alignas(SessionFiles) static char no_files[sizeof(SessionFiles)];
  http::Router router;
  add_run_routes(router, *reinterpret_cast<RunService*>(nowhere));
  add_info_routes(router, *reinterpret_cast<InfoRoutes*>(nothing));
  add_session_routes(router, *reinterpret_cast<SessionRoutes*>(no_sessions));
  add_session_file_routes(router, *reinterpret_cast<SessionFiles*>(no_files));
  std::set<std::string> routes;
  for (const http::Route& route : router.routes()) {
    std::string method(to_string(route.method));
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    routes.insert(method + " " + as_openapi(route.path));
  }
  std::set<std::string> described;
  for (const auto& [path, methods] : document()["paths"].items()) {
    for (const auto& method : methods.items()) described.insert(method.key() + " " + path);
  }
  EXPECT_EQ(described, routes);
}

TEST(OpenApi, HasEveryLimit) {
  const Json& schemas = document()["components"]["schemas"];
  EXPECT_EQ(keys(schemas["Limits"]["properties"]), limit_names());
  EXPECT_EQ(keys(schemas["AppliedLimits"]["properties"]), limit_names());
}

TEST(OpenApi, ASessionsRunTakesWhatARunTakesAndWait) {
  const Json& schemas = document()["components"]["schemas"];
  Json expected = schemas["RunRequest"]["properties"];
  expected["wait"] = schemas["SessionRunRequest"]["properties"]["wait"];
  EXPECT_EQ(schemas["SessionRunRequest"]["properties"], expected);
}

TEST(OpenApi, HasEveryFieldOfAResult) {
  collect::Outcome outcome;
  outcome.stdout_bytes = outcome.stderr_bytes = "\xff";
  const Json result = Json::parse(to_json(outcome));
  const Json& schema = document()["components"]["schemas"]["Result"];
  std::set<std::string> described = keys(schema["properties"]);
  for (const std::string& name : keys(result)) EXPECT_EQ(described.count(name), 1U) << name;
  for (const auto& name : schema["required"]) EXPECT_TRUE(result.contains(name.get<std::string>()));
}

TEST(OpenApi, HasEveryStatusOfARun) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(collect::Status::kOk); ++i) {
    names.emplace(status_name(static_cast<collect::Status>(i)));
  }
  const Json& status = document()["components"]["schemas"]["Result"]["properties"]["status"];
  EXPECT_EQ(status["enum"].get<std::set<std::string>>(), names);
}

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  std::vector<const Json*> open{&document()};
  std::size_t references = 0;
  while (!open.empty()) {
    const Json* const value = open.back();
    open.pop_back();
    if (value->is_object() && value->contains("$ref")) {
      const std::string target = value->at("$ref").get<std::string>();
      EXPECT_TRUE(document().contains(Json::json_pointer(target.substr(1)))) << target;
      ++references;
    }
    if (value->is_structured()) {
      for (const Json& item : *value) open.push_back(&item);
    }
  }
  EXPECT_GT(references, 20U);
}

}  // namespace
}  // namespace sbx::daemon
