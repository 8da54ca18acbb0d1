// The check of `sbx-run doctor` on the image. Stage: edge.
#pragma once

#include "runtime/cli/doctor_checks.h"

namespace sbx::cli {

// As a run finds it, and readable by everybody, which a payload with an id of its own needs.
[[nodiscard]] Check check_image(Host& host, const DoctorOptions& options);

}  // namespace sbx::cli
