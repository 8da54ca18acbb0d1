// The verbs of agentctl, a file each. Each returns the exit code.
#pragma once

#include <optional>
#include <string>

#include "agentd/cli/api_client.h"
#include "agentd/cli/arguments.h"
#include "runtime/base/result.h"

namespace agentd::cli {

[[nodiscard]] int ask(ApiClient& client, const Arguments& arguments);
[[nodiscard]] int show(ApiClient& client, const Arguments& arguments);
[[nodiscard]] int history(ApiClient& client, const Arguments& arguments);
[[nodiscard]] int cancel(ApiClient& client, const Arguments& arguments);
[[nodiscard]] int doctor(ApiClient& client, const std::string& socket);

// Why a --file cannot be attached, with the fix; `error` is of reading it.
[[nodiscard]] sbx::Error unreadable_file(const std::string& path, const sbx::Error& error);

// Why nothing could be saved where --save says; nothing when it could, or is not asked for.
[[nodiscard]] std::optional<Trouble> cannot_save(const Arguments& arguments);

// Says it on stderr; the exit code that it means.
int complain(const Trouble& trouble);

}  // namespace agentd::cli
