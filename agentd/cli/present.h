// Shows a record on this terminal, and saves its files.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "agentd/cli/api_client.h"
#include "agentd/cli/arguments.h"

namespace agentd::cli {

// Result to stdout, the rest to stderr. The exit code that the record means.
[[nodiscard]] int present(ApiClient& client, const nlohmann::ordered_json& record,
                          const Arguments& arguments);

}  // namespace agentd::cli
