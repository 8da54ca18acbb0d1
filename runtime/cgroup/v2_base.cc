#include "runtime/cgroup/v2_base.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "runtime/cgroup/records.h"
#include "runtime/cgroup/scope_client.h"

namespace sbx::cgroup {
namespace {

constexpr std::string_view kEnable = "+cpu +memory +pids";
// The operation of the error that tells a shared group from a useless one.
constexpr const char* kShared = "cgroup.procs";

std::string no_subtree_fix(bool root) {
  if (root) return "systemd-run --scope -p Delegate=yes sbx-run …";
  return "systemd-run --user --scope -p Delegate=yes sbx-run …; without a user manager first, as "
         "root: loginctl enable-linger " +
         std::to_string(::geteuid());
}

std::string parent_of(const std::string& group) {
  const std::size_t slash = group.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : group.substr(0, slash);
}

// Root's own cgroup.procs may have been given to an outer root by an earlier driver.
bool owned_by_caller(const GroupDir& dir) {
  struct stat directory{};
  struct stat procs{};
  return ::fstat(dir.fd(), &directory) == 0 &&
         ::fstatat(dir.fd(), "cgroup.procs", &procs, AT_SYMLINK_NOFOLLOW) == 0 &&
         directory.st_uid == ::geteuid() && (procs.st_uid == ::geteuid() || ::geteuid() == 0);
}

// The system manager marks what it delegated with these attributes (systemd.resource-control(5),
// Delegate=); a user's manager marks nothing, at least up to systemd 252, and is asked by
// sbx-scope.
bool marked_delegated(const GroupDir& dir) {
  for (const char* attribute : {"trusted.delegate", "user.delegate"}) {
    std::array<char, 2> value{};
    const ssize_t size = ::fgetxattr(dir.fd(), attribute, value.data(), value.size());
    if (size == 1 && value[0] == '1') return true;
  }
  return false;
}

bool is_our_scope(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  return name.starts_with(kScopePrefix) && name.ends_with(kScopeSuffix);
}

bool is_unit(const std::string& group) {
  return group.ends_with(".service") || group.ends_with(".scope");
}

// Moves the caller to the leaf where it cannot stand in the way of the controllers.
Result<void> move_to_leaf(const GroupDir& dir) {
  auto leaf = dir.make_child(std::string(kSupervisorLeaf));
  if (!leaf && leaf.error().sys_errno == EEXIST) {
    leaf = dir.open_child(std::string(kSupervisorLeaf));
  }
  if (!leaf) return std::move(leaf).error();
  return leaf->write("cgroup.procs", "0");
}

// Makes `dir` a base, or says why it cannot be one. Changes nothing when it fails the first checks.
Result<void> prepare(const GroupDir& dir) {
  SBX_ASSIGN(const std::string offered, dir.read("cgroup.controllers"));
  if (!has_all_controllers(offered)) {
    return host_lacks("cgroup.controllers", 0, dir.path() + " lacks cpu, memory or pids",
                      "Delegate=cpu memory pids for that unit and those above it");
  }
  SBX_ASSIGN(const std::string enabled, dir.read("cgroup.subtree_control"));
  if (has_all_controllers(enabled)) return {};
  SBX_ASSIGN(const std::string inside, dir.read("cgroup.procs"));
  if (inside == std::to_string(::getpid()) + "\n") {
    SBX_TRY(move_to_leaf(dir));
  } else if (!inside.empty()) {
    return host_lacks(kShared, 0, dir.path() + " holds other processes", "");
  }
  return dir.write("cgroup.subtree_control", kEnable);
}

// The groups from the caller's own upward that may be used, nearest first. Under systemd the search
// ends at the unit the caller is in: what lies above belongs to a manager that is still using it.
std::vector<GroupDir> candidates(const Mount& mount, std::string group) {
  std::vector<GroupDir> found;
  const bool systemd = systemd_is_running();
  const bool root = ::geteuid() == 0;
  if (group.ends_with("/" + std::string(kSupervisorLeaf))) group = parent_of(group);
  for (;; group = parent_of(group)) {
    const std::string path = group_directory(mount, group);
    if (path.empty()) break;
    auto dir = GroupDir::open(path, CGROUP2_SUPER_MAGIC);
    if (!dir) break;
    const bool owned = owned_by_caller(*dir);
    const auto parent =
        GroupDir::open(group_directory(mount, parent_of(group)), CGROUP2_SUPER_MAGIC);
    // A group of ours below one that is not was given to us, mark or no mark (older systemd).
    const bool given = !root && owned && parent && !owned_by_caller(*parent);
    const bool usable = systemd ? owned && (given || marked_delegated(*dir)) : owned && !root;
    if (usable) found.push_back(std::move(*dir));
    if (group == "/" || (systemd && is_unit(group))) break;
  }
  return found;
}

Result<V2Base> base_from_scope(const Mount& mount, const DriverOptions& options, ScopeWish wish) {
  SBX_ASSIGN(const std::string group, get_scope(options.scope_program, wish));
  const std::string path = group_directory(mount, group);
  SBX_ASSIGN(GroupDir dir, GroupDir::open(path, CGROUP2_SUPER_MAGIC));
  SBX_TRY(prepare(dir));
  V2Base base{std::move(dir), std::nullopt};
  if (is_our_scope(path)) {
    auto scopes = GroupDir::open(parent_of(path), CGROUP2_SUPER_MAGIC);
    if (scopes) base.scopes = std::move(*scopes);
  }
  return base;
}

// Root, no systemd. A container's own namespace may first need its root group prepared like any
// other base; the host's root group is never changed (it has no cgroup.type).
Result<V2Base> base_at_top(const Mount& mount, const DriverOptions& options) {
  SBX_ASSIGN(const GroupDir top, GroupDir::open(mount.path, CGROUP2_SUPER_MAGIC));
  SBX_ASSIGN(const std::string enabled, top.read("cgroup.subtree_control"));
  if (!has_all_controllers(enabled)) {
    if (!top.has("cgroup.type")) {
      return host_lacks(
          "cgroup.subtree_control", 0, "cpu, memory or pids are not enabled",
          "echo " + std::string(kEnable) + " > " + mount.path + "/cgroup.subtree_control");
    }
    SBX_TRY(prepare(top));
  }
  auto dir = top.make_child(options.parent);
  if (!dir && dir.error().sys_errno == EEXIST) dir = top.open_child(options.parent);
  if (!dir) {
    return host_lacks("mkdir", dir.error().sys_errno, mount.path + "/" + options.parent,
                      "make " + mount.path + " writable");
  }
  SBX_TRY(prepare(*dir));
  return V2Base{std::move(*dir), std::nullopt};
}

}  // namespace

bool has_all_controllers(std::string_view controllers) {
  const auto names = [controllers](std::string_view name) {
    for (std::size_t at = 0; (at = controllers.find(name, at)) != std::string_view::npos; ++at) {
      const std::size_t end = at + name.size();
      const bool starts = at == 0 || controllers[at - 1] == ' ';
      const bool ends =
          end == controllers.size() || controllers[end] == ' ' || controllers[end] == '\n';
      if (starts && ends) return true;
    }
    return false;
  };
  return names("cpu") && names("memory") && names("pids");
}

const Mount* find_usable_v2(const Hierarchies& hierarchies) {
  for (const Mount& mount : hierarchies.v2) {
    const auto dir = GroupDir::open(mount.path, CGROUP2_SUPER_MAGIC);
    if (!dir) continue;
    const auto controllers = dir->read("cgroup.controllers");
    if (controllers && has_all_controllers(*controllers)) return &mount;
  }
  return nullptr;
}

Result<V2Base> find_v2_base(const Mount& mount, const DriverOptions& options) {
  const bool root = ::geteuid() == 0;
  SBX_ASSIGN(const std::string group, own_v2_group());
  std::string why;
  for (GroupDir& dir : candidates(mount, group)) {
    const auto prepared = prepare(dir);
    if (prepared) return V2Base{std::move(dir), std::nullopt};
    why += to_string(prepared.error()) + "; ";
  }
  if (systemd_is_running()) {
    // A delegated unit that the caller shares with others cannot be used, but a new scope can.
    auto scope = base_from_scope(mount, options, ScopeWish::kAny);
    if (!scope && scope.error().operation == kShared) {
      scope = base_from_scope(mount, options, ScopeWish::kNew);
    }
    if (scope) return scope;
    why += to_string(scope.error());
  } else if (root) {
    return base_at_top(mount, options);
  }
  if (why.empty()) why = group + " and those above it belong to others";
  return host_lacks("cgroup v2", 0, "no delegated subtree: " + why, no_subtree_fix(root));
}

}  // namespace sbx::cgroup
