#include "agentd/service/clean_artifacts.h"

#include <utility>

#include "runtime/base/sha256.h"
#include "runtime/base/utf8.h"

namespace agentd::service {
namespace {

bool is_text(const std::string& content) {
  std::string ignored;
  return content.find('\0') == std::string::npos && sbx::append_replacing(ignored, content);
}

}  // namespace

std::vector<record::Artifact> clean_artifacts(std::vector<record::Artifact> artifacts,
                                              const redact::Redactor& redactor) {
  for (record::Artifact& artifact : artifacts) {
    if (!is_text(artifact.content)) continue;
    std::string clean = redactor.clean(artifact.content).text();
    if (clean == artifact.content) continue;
    artifact.content = std::move(clean);
    artifact.size = artifact.content.size();
    artifact.sha256 = sbx::sha256_of(artifact.content);
    artifact.redacted = true;
  }
  return artifacts;
}

}  // namespace agentd::service
