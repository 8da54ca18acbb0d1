// The two JSON documents of this program. The only user of the JSON library here.
#pragma once

#include <string>
#include <vector>

#include "bench/src/report.h"

namespace sbx::bench {

// config.json of an OCI bundle: the limits of sbx-run --cpus 2, every namespace, no capability.
[[nodiscard]] std::string oci_config(const std::string& rootfs,
                                     const std::vector<std::string>& argv);
[[nodiscard]] std::string report_json(const Report& report);

}  // namespace sbx::bench
