// /v1/info: what this agentd asks, runs on and allows, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "agentd/prompts/composer.h"
#include "agentd/providers/provider.h"
#include "agentd/record/record.h"
#include "agentd/sandbox/sandbox.h"

namespace agentd::api {

// All are borrowed.
struct InfoSource {
  const providers::ProviderInfo& provider;
  const providers::Reach& reach;  // not asked: nothing is said of it
  const sandbox::InfoOutcome& sandbox;
  const prompts::PromptVersions& prompts;
  const record::Budget& ceilings;
};

// Not yet cleaned of secrets: what a server said of itself is in it.
[[nodiscard]] nlohmann::ordered_json info_json(const InfoSource& source);

}  // namespace agentd::api
