#include "agentd/providers/replay.h"

#include <fmt/core.h>

#include <utility>

namespace agentd::providers {

ReplayProvider::ReplayProvider(Recordings recordings, std::string origin, Prices prices)
    : recordings_(std::move(recordings)),
      info_{.kind = "replay",
            .model = "recordings",
            .origin = std::move(origin),
            .prices = prices,
            .replayed = true} {}

sbx::async::Task<CompletionResult> ReplayProvider::complete(
    CompletionRequest request, const sbx::async::Cancellation* /*never waits*/) {
  const Recording* recording = recordings_.find(request.key);
  if (recording != nullptr) co_return CompletionResult(recording->completion);
  const std::string label = request.key.label.empty() ? "none" : request.key.label;
  ProviderError error{
      .trouble = Trouble::kNoRecording,
      .detail = fmt::format("no recording for request_sha256 {}, call {} (label {}) in {}",
                            request.key.request_sha256, request.key.call, label, info_.origin),
      .fix =
          "ask one of the recorded questions, set up a model in agentd.toml, or make a recording "
          "with agentd record"};
  co_return CompletionResult(std::move(error));
}

}  // namespace agentd::providers
