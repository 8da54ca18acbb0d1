// Which provider the configuration means, made ready. At start-up.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agentd/config/config.h"
#include "agentd/providers/provider.h"
#include "agentd/redact/secret.h"
#include "http/async/loop.h"
#include "http/async/task.h"
#include "http/client.h"
#include "runtime/base/result.h"

namespace agentd::providers {

// The key that is configured; empty when none is. Blocks.
[[nodiscard]] sbx::Result<redact::Secret> configured_key(const config::AgentConfig& config);

struct Chosen {
  std::unique_ptr<Provider> provider;
  std::string said;  // which, and why: for the first line
};

// `local_servers`: base URLs that "auto" looks at, in that order; see kLocalServers. `loop` and
// `client` are borrowed and outlive the provider.
[[nodiscard]] sbx::async::Task<sbx::Result<Chosen>> choose_provider(
    sbx::async::Loop& loop, sbx::http::AsyncClient& client, config::AgentConfig config,
    redact::Secret key, std::vector<std::string> local_servers);

// Ollama, llama.cpp, vLLM, LM Studio.
[[nodiscard]] std::vector<std::string> local_servers();

}  // namespace agentd::providers
