#include "agentd/providers/recorder.h"

#include <fcntl.h>

#include <utility>

#include "agentd/providers/recordings.h"
#include "runtime/base/log.h"
#include "runtime/base/sys.h"

namespace agentd::providers {

Recorder::Recorder(std::unique_ptr<Provider> provider, sbx::UniqueFd file,
                   const redact::Redactor& redactor)
    : provider_(std::move(provider)), file_(std::move(file)), redactor_(redactor) {}

sbx::Result<std::unique_ptr<Recorder>> Recorder::open(std::unique_ptr<Provider> provider,
                                                      const std::string& path,
                                                      const redact::Redactor& redactor) {
  SBX_ASSIGN(sbx::UniqueFd file,
             sbx::sys::open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0644));
  return std::unique_ptr<Recorder>(new Recorder(std::move(provider), std::move(file), redactor));
}

sbx::async::Task<CompletionResult> Recorder::complete(
    CompletionRequest request, const sbx::async::Cancellation* cancellation) {
  const RecordingKey key = request.key;
  CompletionResult result = co_await provider_->complete(std::move(request), cancellation);
  if (const auto* completion = std::get_if<Completion>(&result)) write_down(key, *completion);
  co_return result;
}

// One short write to a file of the page cache: not worth a thread.
void Recorder::write_down(RecordingKey key, const Completion& completion) const {
  Recording recording{std::move(key), completion};
  recording.completion.text = redactor_.clean(completion.text).text();
  for (ToolCall& call : recording.completion.tool_calls) {
    call.name = redactor_.clean(call.name).text();
    call.arguments = redactor_.clean(call.arguments).text();
  }
  const auto written = sbx::sys::write_all(file_.get(), to_line(recording) + "\n");
  if (written) return;
  sbx::log::error("a reply could not be recorded", {{"error", to_string(written.error())}});
}

}  // namespace agentd::providers
