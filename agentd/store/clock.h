// The time as it is stored and shown: of the host's clock, in milliseconds since the epoch.
#pragma once

#include <chrono>
#include <cstdint>

namespace agentd::store {

inline std::int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace agentd::store
