// Takes keys out of the artifacts that are text. Pure; slow for large files.
#pragma once

#include <vector>

#include "agentd/record/record.h"
#include "agentd/redact/redactor.h"

namespace agentd::service {

// Text is, whatever its name says: UTF-8 without a NUL; UTF-16 and UTF-32 of either byte order,
// with a mark or without; and bytes without a control, as of Latin-1. It keeps its encoding. Size
// and hash follow the new content; `redacted` says that there was something. Other files stay as
// they are (SECURITY.md).
[[nodiscard]] std::vector<record::Artifact> clean_artifacts(std::vector<record::Artifact> artifacts,
                                                            const redact::Redactor& redactor);

}  // namespace agentd::service
