// After how long those whom sbxd refuses may ask again, by what they wait for. Stage: daemon.
// docs/api.md says the same.
#pragma once

#include <chrono>

namespace sbx::daemon {

inline constexpr std::chrono::seconds kRetrySoon{1};   // others end, and give back what is lacking
inline constexpr std::chrono::seconds kRetryLater{5};  // a spawner, an audit file or an image
inline constexpr std::chrono::seconds kRetryOfDisk{60};  // room for sessions on their disk

}  // namespace sbx::daemon
