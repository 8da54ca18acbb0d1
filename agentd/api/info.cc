#include "agentd/api/info.h"

#include <nlohmann/json.hpp>

#include "agentd/api/submission.h"

namespace agentd::api {

using Json = nlohmann::ordered_json;

namespace {

Json sandbox_json(const sandbox::InfoOutcome& outcome) {
  if (const auto* known = std::get_if<sandbox::SharedInfo>(&outcome)) {
    return {{"reachable", true},
            {"version", (*known)->version},
            {"missing_layers", (*known)->missing_layers}};
  }
  const auto& failure = std::get<sandbox::SandboxFailure>(outcome);
  Json json{{"reachable", false},
            {"version", nullptr},
            {"missing_layers", Json::array()},
            {"problem", failure.detail}};
  if (!failure.fix.empty()) json["fix"] = failure.fix;
  return json;
}

Json provider_json(const providers::ProviderInfo& provider, const providers::Reach& reach) {
  Json json{{"kind", provider.kind},
            {"model", provider.model},
            {"origin", provider.origin},
            {"replayed", provider.replayed},
            {"price_in", provider.prices.input},
            {"price_out", provider.prices.output},
            {"reachable", reach.asked ? Json(reach.answers) : Json()}};
  if (reach.asked) json[reach.answers ? "said" : "problem"] = reach.detail;
  if (!reach.fix.empty()) json["fix"] = reach.fix;
  return json;
}

double seconds(std::chrono::milliseconds duration) {
  return static_cast<double>(duration.count()) / 1000;
}

}  // namespace

Json info_json(const InfoSource& source) {
  const record::Budget& ceilings = source.ceilings;
  return {{"version", SBX_VERSION},
          {"provider", provider_json(source.provider, source.reach)},
          {"prompts",
           {{"codegen", source.prompts.codegen},
            {"repair", source.prompts.repair},
            {"tools", source.prompts.tools}}},
          {"languages", {"python", "javascript"}},
          {"ceilings",
           {{"attempts", ceilings.attempts},
            {"iterations", kMaxIterations},
            {"tokens", ceilings.tokens},
            {"cost_usd", dollars(ceilings.cost)},
            {"sandbox_seconds", seconds(ceilings.sandbox)},
            {"wall_seconds", seconds(ceilings.wall)}}},
          {"limits",
           {{"text_bytes", kMaxTextBytes}, {"files", kMaxFiles}, {"file_bytes", kMaxFileBytes}}},
          {"sandbox", sandbox_json(source.sandbox)}};
}

}  // namespace agentd::api
