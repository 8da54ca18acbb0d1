// HttpProvider: a model server on the network, in one of the dialects of wire.h.
//
// Streams by default, so that a call can be cancelled, or cut, in the middle; a server that answers
// plainly anyway is understood. Tries again, with growing waits, only after a try that cannot have
// cost anything: refused for now, or never sent. So one reservation covers all tries. Runs on the
// loop.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agentd/providers/provider.h"
#include "agentd/providers/retry.h"
#include "agentd/providers/wire.h"
#include "agentd/redact/secret.h"
#include "http/async/event.h"
#include "http/async/loop.h"
#include "http/client.h"

namespace agentd::providers {

struct HttpProviderOptions {
  ProviderInfo info{};
  std::string base_url{};  // with the version: "https://api.openai.com/v1"
  redact::Secret key{};
  WireSettings wire{};
  std::chrono::milliseconds timeout{60'000};  // of one try
  RetryPolicy retry{};
  std::function<double()> random{};  // in [0, 1)
};

class HttpProvider final : public Provider {
 public:
  // `loop` and `client` are borrowed and outlive it.
  HttpProvider(sbx::async::Loop& loop, sbx::http::AsyncClient& client, std::unique_ptr<Wire> wire,
               HttpProviderOptions options);

  [[nodiscard]] const ProviderInfo& info() const override { return options_.info; }
  [[nodiscard]] sbx::async::Task<CompletionResult> complete(
      CompletionRequest request, const sbx::async::Cancellation* cancellation) override;
  // Asks for the list of models, with the key, once: for all who ask while it does, or just after.
  [[nodiscard]] sbx::async::Task<Reach> reach(
      const sbx::async::Cancellation* cancellation) override;

 private:
  struct Try;
  [[nodiscard]] sbx::async::Task<Try> try_once(const std::string& body, int max_tokens,
                                               sbx::async::Deadline deadline,
                                               const sbx::async::Cancellation* cancellation);
  [[nodiscard]] sbx::async::Task<Reach> list_models(const sbx::async::Cancellation* cancellation);

  sbx::async::Loop& loop_;
  sbx::http::AsyncClient& client_;
  std::unique_ptr<Wire> wire_;
  HttpProviderOptions options_;
  bool reaching_ = false;
  sbx::async::Event reach_ended_;
  std::optional<Reach> reach_;
  std::chrono::steady_clock::time_point reached_at_;
};

}  // namespace agentd::providers
