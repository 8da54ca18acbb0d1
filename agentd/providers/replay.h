// ReplayProvider: recorded replies instead of a model. No network.
#pragma once

#include <string>

#include "agentd/providers/provider.h"
#include "agentd/providers/recordings.h"

namespace agentd::providers {

class ReplayProvider final : public Provider {
 public:
  // `origin`: where they are from. `prices`: of the usage that the recordings tell.
  ReplayProvider(Recordings recordings, std::string origin, Prices prices);

  [[nodiscard]] const ProviderInfo& info() const override { return info_; }
  // kNoRecording names the key, so that the missing line can be added.
  [[nodiscard]] sbx::async::Task<CompletionResult> complete(
      CompletionRequest request, const sbx::async::Cancellation* cancellation) override;

 private:
  Recordings recordings_;
  ProviderInfo info_;
};

}  // namespace agentd::providers
