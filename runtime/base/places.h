// Where a daemon has its files, as the environment says, and the directories for them. Stage: base.
#pragma once

#include <sys/types.h>

#include <string>

#include "runtime/base/result.h"

namespace sbx {

inline constexpr const char* kMakeRoom = "make room on the file system that it is on";

// An absolute path in the environment, the first where it is a list (systemd.exec(5)); else empty.
[[nodiscard]] std::string path_from_environment(const char* name);

// The directory, and those above it that are missing, for all to enter (0755). What is there stays
// as it is. kHost, with the fix, where one cannot be made.
[[nodiscard]] Result<void> make_with_parents(const std::string& path, mode_t mode);

}  // namespace sbx
