// agentctl's exit codes.
#pragma once

#include <string>

namespace agentd::cli {

inline constexpr int kSucceeded = 0;
inline constexpr int kGaveUp = 1;  // or was cancelled
inline constexpr int kWrongUse = 2;
inline constexpr int kMachinery = 3;  // agentd, the sandbox or this host failed
inline constexpr int kUnderWay = 4;   // of show: it has not ended, well or otherwise

// Of a record's state.
[[nodiscard]] int exit_code_of(const std::string& state);

}  // namespace agentd::cli
