#include "agentd/providers/choose.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "agentd/embedded/embedded.h"
#include "agentd/providers/http_provider.h"
#include "agentd/providers/json_access.h"
#include "agentd/providers/key.h"
#include "agentd/providers/recordings.h"
#include "agentd/providers/replay.h"
#include "agentd/providers/wire.h"

namespace agentd::providers {

using config::AgentConfig;
using sbx::Result;
using sbx::async::Task;
using sbx::http::AsyncClient;
using sbx::http::ClientResponse;
using sbx::http::ClientResult;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kProbeTime{500};
constexpr std::string_view kAnthropic = "https://api.anthropic.com/";

KeySource key_source(const AgentConfig& config) {
  return {config.api_key_file, config.api_key_credential, config.api_key_env};
}

std::function<double()> chance() {
  return [engine = std::mt19937(std::random_device{}())]() mutable {
    return std::uniform_real_distribution<double>(0, 1)(engine);
  };
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::unique_ptr<Provider> live_provider(sbx::async::Loop& loop, AsyncClient& client,
                                        const AgentConfig& config, const std::string& kind,
                                        redact::Secret key) {
  HttpProviderOptions options;
  options.base_url = without_slash(config.base_url);
  options.info = {.kind = kind,
                  .model = config.model,
                  .origin = options.base_url,
                  .prices = {config.price_in, config.price_out}};
  options.key = std::move(key);
  options.wire = {.model = config.model,
                  .temperature = config.temperature,
                  .stream = config.stream,
                  .token_limit_field = config.token_limit_field};
  options.timeout = milliseconds(static_cast<milliseconds::rep>(config.timeout_seconds * 1000));
  options.retry.tries = static_cast<int>(config.tries);
  options.random = chance();
  return std::make_unique<HttpProvider>(
      loop, client, kind == "anthropic" ? anthropic_wire() : openai_wire(), std::move(options));
}

Result<Chosen> replay_provider(const AgentConfig& config, std::string_view why) {
  Recordings recordings;
  std::string origin = "the shipped demo";
  if (config.recordings.empty()) {
    for (const embedded::File& file : embedded::demo_recordings()) {
      SBX_TRY(recordings.add_text(file.text, std::string(file.name)));
    }
  } else {
    SBX_ASSIGN(recordings, Recordings::load(config.recordings));
    origin = fmt::format("{}", config.recordings.front());
  }
  Chosen chosen;
  chosen.said = fmt::format("provider: replay ({}{} recorded replies of {}; no model is asked)",
                            why, recordings.size(), origin);
  chosen.provider = std::make_unique<ReplayProvider>(std::move(recordings), std::move(origin),
                                                     Prices{config.price_in, config.price_out});
  return chosen;
}

// The first model that a server of OpenAI's kind lists; "" when it is none.
std::string first_model(const std::string& body) {
  const auto json = nlohmann::ordered_json::parse(body, nullptr, false);
  const auto* data = member(json, "data");
  if (data == nullptr || !data->is_array() || data->empty()) return {};
  return text_of(member(data->front(), "id"));
}

Task<std::string> probe(AsyncClient& client, std::string base_url) {
  sbx::http::ClientRequest request;
  request.url = base_url + "/models";
  request.connect_timeout = kProbeTime;
  request.timeout = kProbeTime;
  request.body_bytes = 1U << 20;
  const ClientResult result = co_await client.perform(std::move(request));
  std::string model;
  const auto* response = std::get_if<ClientResponse>(&result);
  if (response != nullptr && response->status == 200) model = first_model(response->body);
  co_return model;
}

Chosen described(std::unique_ptr<Provider> provider, std::string_view why) {
  const ProviderInfo& info = provider->info();
  std::string said =
      fmt::format("provider: {} ({}{} at {})", info.kind, why, info.model, info.origin);
  return {std::move(provider), std::move(said)};
}

}  // namespace

Result<redact::Secret> configured_key(const AgentConfig& config) {
  return load_key(key_source(config));
}

std::vector<std::string> local_servers() {
  return {"http://127.0.0.1:11434/v1", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8000/v1",
          "http://127.0.0.1:1234/v1"};
}

Task<Result<Chosen>> choose_provider(sbx::async::Loop& loop, AsyncClient& client,
                                     AgentConfig config, redact::Secret key,
                                     std::vector<std::string> local_servers) {
  if (config.provider_kind == "replay") co_return replay_provider(config, "");
  if (config.provider_kind != "auto") {
    co_return described(live_provider(loop, client, config, config.provider_kind, std::move(key)),
                        "");
  }
  if (!key.empty()) {
    const bool anthropic = config.base_url.starts_with(kAnthropic);
    co_return described(
        live_provider(loop, client, config, anthropic ? "anthropic" : "openai", std::move(key)),
        "by the configured key, ");
  }
  for (const std::string& server : local_servers) {
    const std::string model = co_await probe(client, server);
    if (model.empty()) continue;
    config.base_url = server;
    if (config.model.empty()) config.model = model;
    co_return described(live_provider(loop, client, config, "openai", redact::Secret()),
                        "found on this machine, ");
  }
  co_return replay_provider(config, "no key and no local server; ");
}

}  // namespace agentd::providers
