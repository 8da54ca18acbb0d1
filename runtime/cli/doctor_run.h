// Runs as `sbx-run doctor` makes them, to see that they end well. Stage: edge (doctor).
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/policy/config.h"

namespace sbx::cli {

// An empty program of each language whose interpreter is in the root filesystem or that the image's
// manifest lists, in a box as every run gets it: what the interpreter itself needs (its loader,
// libraries, standard library) must be there too. Gives the languages; kHost, with the fix, for the
// first that did not end as an empty program does. One thread; SIGINT and its like end the process
// once nothing is left of the run.
[[nodiscard]] Result<std::vector<std::string>> run_languages(const std::string& rootfs,
                                                             const policy::RuntimeConfig& config);

}  // namespace sbx::cli
