// Chance that nobody can guess, as text: ids of requests, tokens.
#pragma once

#include <cstddef>
#include <string>

namespace agentd::redact {

// `bytes` of getrandom(2), two hexadecimal digits each. Waits until the system's pool is ready.
// Throws std::system_error where a filter forbids the call.
[[nodiscard]] std::string random_hex(std::size_t bytes);

}  // namespace agentd::redact
