// The checks of `sbx-run doctor` on the image, and on all together: a run. Stage: edge.
#pragma once

#include "runtime/cli/doctor_checks.h"

namespace sbx::cli {

// As a run finds it, readable by everybody, which a payload with an id of its own needs, with the
// interpreters of its languages. Degraded, and not required, where others may write below rootfs/,
// at which a run does not look.
[[nodiscard]] Check check_image(Host& host, const DoctorOptions& options);

// Runs of each language, where what comes before holds. See doctor_run.h.
[[nodiscard]] Check check_run(Host& host, const DoctorOptions& options, bool rest_holds);

}  // namespace sbx::cli
