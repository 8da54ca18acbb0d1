// Where this host's cgroup hierarchies are mounted, and where the calling process stands in them.
//
// Pure parsers of /proc/self/mountinfo and /proc/self/cgroup (proc(5), cgroups(7)), and discover(),
// which feeds them. Nothing here trusts a path: GroupDir::open checks the file system again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace sbx::cgroup {

struct Mount {
  std::string path;                      // where it is mounted, octal escapes decoded
  std::string root;                      // which group of the hierarchy is shown there
  std::vector<std::string> controllers;  // v1 only: the controllers of this hierarchy
};

struct Hierarchies {
  std::vector<Mount> v1;
  std::vector<Mount> v2;
};

// Lines that are not cgroup mounts, or that make no sense, are skipped.
[[nodiscard]] Hierarchies parse_mountinfo(std::string_view text);

// The path of the v2 membership ("0::PATH"), or "" when there is none.
[[nodiscard]] std::string parse_self_cgroup(std::string_view text);

// The directory that shows group `group` (a path as in /proc/self/cgroup) below `mount`; "" when
// the mount does not show it (it lies outside the mount's root or the cgroup namespace).
[[nodiscard]] std::string group_directory(const Mount& mount, const std::string& group);

// The first v1 mount that has `controller`, or nullptr.
[[nodiscard]] const Mount* find_v1(const Hierarchies& hierarchies, std::string_view controller);

[[nodiscard]] Result<Hierarchies> discover();
[[nodiscard]] Result<std::string> own_v2_group();

// True when there is no swap area to limit (/proc/swaps has its heading only).
[[nodiscard]] bool host_has_no_swap();

}  // namespace sbx::cgroup
