// The three fields of agentd.toml that say where the provider's key is. Pure.
#pragma once

#include <string>

#include "agentd/config/config.h"
#include "agentd/config/key_lines.h"
#include "runtime/base/result.h"

namespace agentd::config {

// kInvalid for more than one, for what cannot be the name of a variable or a credential, and for
// what looks like the key itself, pasted where its place belongs. No error repeats such a value.
[[nodiscard]] sbx::Result<void> check_key_fields(const AgentConfig& config, const KeyLines& lines);
// The one that is set: "provider.api_key_file"; "" for none.
[[nodiscard]] std::string set_key_field(const AgentConfig& config);

}  // namespace agentd::config
