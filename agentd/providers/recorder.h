// Recorder: another provider, whose replies are appended to a file of recordings.
#pragma once

#include <memory>
#include <string>

#include "agentd/providers/provider.h"
#include "agentd/redact/redactor.h"
#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace agentd::providers {

class Recorder final : public Provider {
 public:
  // Opens `path` for appending. `redactor` is borrowed: keys in a reply do not reach the file.
  [[nodiscard]] static sbx::Result<std::unique_ptr<Recorder>> open(
      std::unique_ptr<Provider> provider, const std::string& path,
      const redact::Redactor& redactor);

  [[nodiscard]] const ProviderInfo& info() const override { return provider_->info(); }
  // A reply that cannot be written down is still given; the log says so.
  [[nodiscard]] sbx::async::Task<CompletionResult> complete(
      CompletionRequest request, const sbx::async::Cancellation* cancellation) override;
  [[nodiscard]] sbx::async::Task<Reach> reach(
      const sbx::async::Cancellation* cancellation) override {
    return provider_->reach(cancellation);
  }

 private:
  Recorder(std::unique_ptr<Provider> provider, sbx::UniqueFd file,
           const redact::Redactor& redactor);
  void write_down(RecordingKey key, const Completion& completion) const;

  std::unique_ptr<Provider> provider_;
  sbx::UniqueFd file_;
  const redact::Redactor& redactor_;
};

}  // namespace agentd::providers
