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
#include "tests/support/openapi.h"

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
    routes.insert(test::operation(route.method, route.path));
  }
  EXPECT_EQ(test::described_operations(document()), routes);
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
  outcome.workspace.emplace();
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

TEST(OpenApi, EveryCallHasTheRefusalsOfTheServerItself) {
  EXPECT_THAT(test::operations_without_refusals(document()), ::testing::IsEmpty());
}

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  const test::References references = test::references_in(document());
  EXPECT_TRUE(references.lead_nowhere.empty()) << references.lead_nowhere.front();
  EXPECT_GT(references.count, 20U);
}

}  // namespace
}  // namespace sbx::daemon
