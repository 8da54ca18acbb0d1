// agentctl doctor: what works, and what to do about the rest.
#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "agentd/cli/exit_codes.h"
#include "agentd/cli/output.h"
#include "agentd/cli/verbs.h"
#include "agentd/render/json_view.h"
#include "runtime/base/escape.h"

namespace agentd::cli {
namespace {

using Json = nlohmann::ordered_json;
using render::flag_at;
using render::member;
using render::text_at;
using sbx::escape_for_terminal;

// agentd waits no longer than 3 s for a provider or a sandbox that it asks.
constexpr std::chrono::seconds kPatience{5};

void line(bool good, std::string_view what, const std::string& detail, const std::string& fix) {
  print(fmt::format("{:<4}  {:<9}  {}\n", good ? "ok" : "FAIL", what, escape_for_terminal(detail)));
  if (!good && !fix.empty())
    print(fmt::format("{:<4}  {:<9}  fix: {}\n", "", "", escape_for_terminal(fix)));
}

bool check_sandbox(const Json& box) {
  const bool reachable = flag_at(box, "reachable");
  if (!reachable) {
    const std::string fix = text_at(box, "fix");
    line(false, "sandbox", text_at(box, "problem"),
         fix.empty() ? "see whether sbxd runs, and agentd --sbxd-socket names its socket" : fix);
    return false;
  }
  const Json& missing = member(box, "missing_layers");
  std::string names;
  for (const Json& name : missing) names += " " + (name.is_string() ? name.get<std::string>() : "");
  if (!missing.empty()) {
    line(false, "sandbox", "these required layers do not hold:" + names,
         "sbx-run doctor says what this host lacks");
    return false;
  }
  line(true, "sandbox", "every required layer holds", "");
  return true;
}

bool check_store(const Json& health) {
  const bool good = text_at(health, "store") != "failed";
  const std::string problem = text_at(health, "problem");
  if (!problem.empty()) {
    line(good, "store", problem, text_at(health, "fix"));
  } else {
    line(good, "store", good ? "takes records" : "what was to be stored last could not be",
         "make room in agentd's state directory; its log says what failed");
  }
  return good;
}

bool check_provider(const Json& provider) {
  std::string detail = text_at(provider, "kind");
  if (flag_at(provider, "replayed")) {
    detail += ": recorded replies of " + text_at(provider, "origin") +
              "; for other questions set up a model in agentd.toml";
  } else {
    detail += ": " + text_at(provider, "model") + " at " + text_at(provider, "origin");
  }
  const Json& reachable = member(provider, "reachable");
  const bool good = !reachable.is_boolean() || reachable.get<bool>();
  if (!good) {
    detail += ": " + text_at(provider, "problem");
  } else if (reachable.is_boolean()) {
    detail += ", which " + text_at(provider, "said");
  } else if (!flag_at(provider, "replayed")) {
    detail += " (not asked)";
  }
  line(good, "provider", detail, text_at(provider, "fix"));
  return good;
}

}  // namespace

int doctor(ApiClient& client, const std::string& socket) {
  client.limit_time(kPatience);
  const auto info = client.info("?provider=ask");
  if (const auto* trouble = std::get_if<Trouble>(&info)) {
    line(false, "agentd", trouble->text, trouble->fix);
    (void)finish_output();  // it is a failure already
    return kMachinery;
  }
  const Json& json = std::get<Json>(info);
  line(true, "agentd", "version " + text_at(json, "version") + " on " + socket, "");
  bool good = check_sandbox(member(json, "sandbox"));
  if (const auto health = client.get("/healthz"); const auto* told = std::get_if<Json>(&health)) {
    good = check_store(*told) && good;
  }
  good = check_provider(member(json, "provider")) && good;
  return finish_output() && good ? kSucceeded : kMachinery;
}

}  // namespace agentd::cli
