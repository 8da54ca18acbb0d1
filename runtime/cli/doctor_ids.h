// Which subordinate ids of this host nobody has yet. Stage: edge (doctor). Texts of files to a
// number; reads nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/host.h"

namespace sbx::cli {

inline constexpr std::uint32_t kSubordinateCount = 65536;

// Contents of the files in /etc; empty for one that is not there.
struct IdFiles {
  std::string subuid, subgid;  // subuid(5), subgid(5)
  std::string passwd, group;
  std::string login_defs;
};

// The first of kSubordinateCount ids that are in no line of these files, whether of users or of
// groups, nor in `taken`, within SUB_UID_MIN to SUB_UID_MAX and SUB_GID_MIN to SUB_GID_MAX of
// login.defs, and never below 100000. Lines that are none of subuid(5) are as if they were not
// there. None when nothing is free.
[[nodiscard]] std::optional<std::uint32_t> free_subordinate_ids(const IdFiles& files,
                                                                const std::vector<IdRange>& taken);

}  // namespace sbx::cli
