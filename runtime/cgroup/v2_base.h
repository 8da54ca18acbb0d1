// Finds, or gets, the cgroup v2 subtree in which runs may be made: a directory that is ours to
// manage, has cpu, memory and pids, no processes of its own, and those controllers enabled for its
// children. Runs once, in the supervisor, before any thread is started: it may start sbx-scope and
// may move the calling process.
//
// Where it looks, in this order:
//  1. upward from the caller's own group: a delegated one (a system unit with Delegate=, or, where
//     systemd does not rule, one whose directory and cgroup.procs the ordinary user owns);
//  2. systemd, asked through sbx-scope (the user's manager, or the system's for root): the caller's
//     unit if that has Delegate=, else a new scope;
//  3. root without systemd: <mount>/<parent>.
// A process that stands in the base itself is moved to its leaf `supervisor` first, because a group
// with processes cannot enable controllers for its children ("no internal processes", cgroups(7)).
// Only ever the caller itself is moved: another process in that group rules the group out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/cgroup/driver.h"
#include "runtime/cgroup/group_dir.h"
#include "runtime/cgroup/hierarchy.h"

namespace sbx::cgroup {

struct V2Base {
  GroupDir dir;
  // The directory that holds our scopes when `dir` is one of them: dead neighbours are swept there.
  std::optional<GroupDir> scopes;
};

// True when `controllers` (the text of cgroup.controllers or cgroup.subtree_control) names cpu,
// memory and pids. Pure.
[[nodiscard]] bool has_all_controllers(std::string_view controllers);

// A v2 mount of this host that offers all three, or nullptr (none, or hybrid with v1).
[[nodiscard]] const Mount* find_usable_v2(const Hierarchies& hierarchies);

// kHost with the fix when nothing of the above can be had.
[[nodiscard]] Result<V2Base> find_v2_base(const Mount& mount, const DriverOptions& options);

// The unit names that sbx-scope is asked for begin and end so.
inline constexpr std::string_view kScopePrefix = "sbx-";
inline constexpr std::string_view kScopeSuffix = ".scope";

}  // namespace sbx::cgroup
