// The OpenAPI document against the routes, and against records as they are made.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "agentd/api/routes.h"
#include "agentd/embedded/embedded.h"
#include "agentd/record/record_json.h"
#include "tests/support/openapi.h"

namespace agentd::api {
namespace {

using Json = nlohmann::ordered_json;

const Json& document() {
  static const Json kJson = Json::parse(embedded::find(embedded::documents(), "openapi"));
  return kJson;
}

const Json& resolved(const Json& schema) {
  if (!schema.contains("$ref")) return schema;
  return document().at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1)));
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return type == "array" ? value.is_array() : value.is_object();
}

// What is wrong with `value`, by the part of JSON Schema that the document uses; "" for nothing.
std::string complaint(const Json& value, const Json& given, const std::string& at) {
  const Json& schema = resolved(given);
  if (schema.contains("oneOf")) {
    std::size_t fits = 0;
    std::string last;
    for (const Json& one : schema["oneOf"]) {
      last = complaint(value, one, at);
      fits += last.empty() ? 1 : 0;
    }
    return fits == 1 ? "" : last + " (none of oneOf)";
  }
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    bool any = false;
    for (const Json& type : types) any = any || has_type(value, type.get<std::string>());
    if (!any) return at + " is no " + types.dump() + ": " + value.dump();
  }
  if (schema.contains("enum")) {
    bool any = false;
    for (const Json& one : schema["enum"]) any = any || one == value;
    if (!any) return at + " is none of " + schema["enum"].dump() + ": " + value.dump();
  }
  if (value.is_array() && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      auto text = complaint(value[i], schema["items"], at + "[" + std::to_string(i) + "]");
      if (!text.empty()) return text;
    }
  }
  if (!value.is_object()) return "";
  const Json properties = schema.value("properties", Json::object());
  for (const Json& name : schema.value("required", Json::array())) {
    if (!value.contains(name.get<std::string>())) return at + " lacks " + name.dump();
  }
  for (const auto& [name, item] : value.items()) {
    const Json more = schema.value("additionalProperties", Json(true));
    if (!properties.contains(name) && more == Json(false)) return at + " has " + name;
    const Json& part = properties.contains(name) ? properties.at(name) : more;
    if (!part.is_object()) continue;
    if (auto text = complaint(item, part, at + "." + name); !text.empty()) return text;
  }
  return "";
}

const Json& schema(const std::string& name) {
  return document()["components"]["schemas"][name];
}

std::set<std::string> names_in(const Json& list) {
  std::set<std::string> names;
  for (const Json& name : list) {
    if (name.is_string()) names.insert(name.get<std::string>());
  }
  return names;
}

record::Run full_run() {
  record::Run run{.id = "i", .status = "exit", .exit_code = 1, .signal = 9};
  run.limits_hit = {"memory"};
  run.notes = {{"memory", "t", "kernel"}};
  run.files = {{.path = "p", .size = 1}};
  run.refused = {{"q", "a link"}};
  return run;
}

record::Record full_record(record::Mode mode) {
  record::Record record{
      .id = "rq_1", .mode = mode, .text = "t", .language = "python", .label = "l"};
  record.files = {{"a", 1, "s"}};
  record.provider_kind = record.model = "replay";
  record.prompts = {{"codegen", "codegen.v1.python"}};
  record.queued = false;
  record.state.phase = loop::Phase::kDone;
  record.state.ending = {loop::Reason::kCeiling, loop::FailureClass::kRuntime,
                         loop::Ceiling::kAttempts};
  record::Attempt attempt{.failure = loop::FailureClass::kRuntime,
                          .error = record::Error{"exit", "d"}};
  if (mode == record::Mode::kCode) {
    attempt.code = "c";
    attempt.run = full_run();
  } else {
    attempt.tools = {{.name = "run_code", .arguments = "{", .is_error = true, .run = full_run()},
                     {}};
  }
  record.attempts = {attempt, {}};
  record.result = record::Result{.kind = record::Result::Kind::kRaw, .text = "x", .banner = "b"};
  record.artifacts = {{.name = "a", .size = 1, .sha256 = "s", .media_type = "m"}};
  record.created_ms = record.ended_ms = 1000;
  return record;
}

Json told(const record::Record& record) {
  return Json::parse(record_json(record, redact::Redactor()).text());
}

TEST(OpenApi, HasEveryRouteAndNoOther) {
  std::set<std::string> routes;
  for (const auto& [method, path] : Routes::all()) {
    routes.insert(sbx::test::operation(method, std::string(path)));
  }
  EXPECT_EQ(sbx::test::described_operations(document()), routes);
}

TEST(OpenApi, RecordsOfBothModesAreAsDescribed) {
  for (const record::Mode mode : {record::Mode::kCode, record::Mode::kTools}) {
    const record::Record full = full_record(mode);
    EXPECT_EQ(complaint(told(full), schema("Record"), "record"), "");
    const Json summary = Json::parse(summary_json(full, redact::Redactor()).text());
    EXPECT_EQ(complaint(summary, schema("Summary"), "summary"), "");
    record::Record fresh;
    fresh.mode = mode;
    EXPECT_EQ(complaint(told(fresh), schema("Record"), "fresh"), "");
  }
}

TEST(OpenApi, ResultsOfEveryTypeAreAsDescribed) {
  record::Record record = full_record(record::Mode::kCode);
  for (const envelope::Type type : {envelope::Type::kTable, envelope::Type::kChart,
                                    envelope::Type::kText, envelope::Type::kFile}) {
    envelope::Envelope envelope{.type = type, .table = {.columns = {"c"}, .rows = {{{}}}}};
    record.result = record::Result{.envelope = envelope};
    EXPECT_EQ(complaint(told(record), schema("Record"), "record"), "");
  }
}

TEST(OpenApi, TheCheckItselfCanFail) {
  Json record = told(full_record(record::Mode::kCode));
  record["extra"] = 1;
  EXPECT_NE(complaint(record, schema("Record"), "record"), "");
  record.erase("extra");
  record["attempts"][0]["class"] = "none of them";
  EXPECT_NE(complaint(record, schema("Record"), "record"), "");
  record["attempts"] = nullptr;
  EXPECT_NE(complaint(record, schema("Record"), "record"), "");
}

TEST(OpenApi, NamesAreThoseOfTheLoop) {
  std::set<std::string> classes;
  for (const loop::FailureClass failure : loop::kFailureClasses) {
    classes.emplace(to_string(failure));
  }
  EXPECT_EQ(names_in(schema("Attempt")["properties"]["class"]["enum"]), classes);
  EXPECT_EQ(names_in(schema("Reason")["properties"]["class"]["enum"]), classes);
  std::set<std::string> ceilings = {"iterations"};
  for (const loop::Ceiling ceiling : loop::kCeilings) ceilings.emplace(to_string(ceiling));
  EXPECT_EQ(names_in(schema("Reason")["properties"]["ceiling"]["enum"]), ceilings);
  std::set<std::string> reasons;
  for (int i = 0; i <= static_cast<int>(loop::Reason::kInternal); ++i) {
    reasons.emplace(to_string(static_cast<loop::Reason>(i)));
  }
  EXPECT_EQ(names_in(schema("Reason")["properties"]["code"]["enum"]), reasons);
  std::set<std::string> states = {"queued"};
  record::Record record;
  record.queued = false;
  for (const loop::Phase phase : loop::kPhases) {
    for (int i = 0; i <= static_cast<int>(loop::Reason::kInternal); ++i) {
      record.state.phase = phase;
      record.state.ending.reason = static_cast<loop::Reason>(i);
      states.emplace(state_name(record));
    }
  }
  EXPECT_EQ(names_in(schema("Summary")["properties"]["state"]["enum"]), states);
}

TEST(OpenApi, EveryCallHasTheRefusalsOfTheServerItself) {
  const auto wanting = sbx::test::operations_without_refusals(document());
  EXPECT_TRUE(wanting.empty()) << wanting.front();
}

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  const sbx::test::References references = sbx::test::references_in(document());
  EXPECT_TRUE(references.lead_nowhere.empty()) << references.lead_nowhere.front();
  EXPECT_GT(references.count, 20U);
}

}  // namespace
}  // namespace agentd::api
