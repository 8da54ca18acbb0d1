#include "runtime/cgroup/v1.h"

#include <linux/magic.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "runtime/base/sys.h"
#include "runtime/cgroup/group_dir.h"
#include "runtime/cgroup/members.h"
#include "runtime/cgroup/records.h"
#include "runtime/cgroup/v1_run.h"

namespace sbx::cgroup {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSweepPatience(2000);

std::string subtree_name(const DriverOptions& options) {
  const uid_t uid = options.hand_over ? options.owner_uid : ::geteuid();
  return uid == 0 ? options.parent : options.parent + "-" + std::to_string(uid);
}

// The lines that make an ordinary user's subtree, for the error and for doctor.
std::string user_fix(const std::string& name) {
  const std::string uid = std::to_string(::geteuid());
  return "as root: for c in memory pids cpu cpuacct; do mkdir -p /sys/fs/cgroup/$c/" + name +
         " && chown -R " + uid + " /sys/fs/cgroup/$c/" + name + "; done";
}

Result<GroupDir> open_subtree(const GroupDir& top, const DriverOptions& options) {
  const std::string name = subtree_name(options);
  const bool is_root = ::geteuid() == 0;
  if (is_root && ::mkdirat(top.fd(), name.c_str(), 0755) != 0 && errno != EEXIST) {
    return host_lacks("mkdir", errno, top.path() + "/" + name,
                      "mount " + top.path() + " writable for sbx");
  }
  auto subtree = top.open_child(name);
  if (!subtree) {
    return host_lacks("open", subtree.error().sys_errno, top.path() + "/" + name, user_fix(name));
  }
  if (options.hand_over && ::fchown(subtree->fd(), options.owner_uid, options.owner_gid) != 0) {
    return sys_error("fchown", subtree->path());
  }
  struct stat info{};
  if (::fstat(subtree->fd(), &info) != 0) return sys_error("fstat", subtree->path());
  if (info.st_uid != (options.hand_over ? options.owner_uid : ::geteuid())) {
    return host_lacks("fstat", 0, subtree->path() + " belongs to another user", user_fix(name));
  }
  return subtree;
}

class V1Driver final : public Driver {
 public:
  V1Driver(V1Subtrees subtrees, bool memsw)
      : subtrees_(std::move(subtrees)), memsw_(memsw), no_swap_(!memsw && host_has_no_swap()) {}

  [[nodiscard]] std::string name() const override { return "v1"; }
  [[nodiscard]] std::string detail() const override {
    const char* swap = memsw_ ? "swap limited" : no_swap_ ? "host has no swap" : "swap not limited";
    return std::string("v1: memory pids cpu cpuacct; ") + swap;
  }
  [[nodiscard]] bool swap_controlled() const override { return memsw_ || no_swap_; }

  // Joining needs no common ancestor on v1.
  [[nodiscard]] bool has_spawner_leaf() const override { return false; }
  [[nodiscard]] Result<void> adopt_spawner(pid_t, std::string_view) override { return {}; }
  void release_spawner(std::string_view) override {}

  [[nodiscard]] Result<std::unique_ptr<CgroupRun>> create(std::string_view record,
                                                          const RunLimits& limits) override {
    SBX_TRY(in_stage(check_record(record)));
    return in_stage(make_v1_run(subtrees_, std::string(record), limits));
  }

  [[nodiscard]] Result<int> sweep(IsDead is_dead, void* context) override;

 private:
  [[nodiscard]] bool kill_and_remove(const std::string& group_name) const;

  V1Subtrees subtrees_;
  bool memsw_;
  bool no_swap_;
};

Result<int> V1Driver::sweep(IsDead is_dead, void* context) {
  std::set<std::string> names;
  for (const GroupDir& subtree : subtrees_.dirs) {
    SBX_ASSIGN(const auto children, in_stage(subtree.children()));
    names.insert(children.begin(), children.end());
  }
  int removed = 0;
  for (const std::string& name : names) {
    const std::string_view record = record_of(name);
    if (record.empty() || !is_dead(record, context)) continue;
    if (kill_and_remove(name)) ++removed;
  }
  return removed;
}

bool V1Driver::kill_and_remove(const std::string& group_name) const {
  const auto deadline = steady_clock::now() + kSweepPatience;
  bool all_gone = true;
  for (const GroupDir& subtree : subtrees_.dirs) {
    if (const auto group = subtree.open_child(group_name)) {
      // No forks while we kill. Fails in the other hierarchies, which have no such file.
      if (group->has("pids.max")) (void)group->write("pids.max", "0");
      all_gone = kill_members(*group, deadline).has_value() && all_gone;
    }
    all_gone = subtree.remove_child(group_name, deadline).has_value() && all_gone;
  }
  return all_gone;
}

}  // namespace

Result<std::unique_ptr<Driver>> make_v1_driver(const Hierarchies& hierarchies,
                                               const DriverOptions& options) {
  V1Subtrees subtrees;
  std::map<std::string, std::size_t> seen;  // mount path -> index, for hierarchies that share one
  for (const auto& [controller, index] :
       {std::pair{"memory", &subtrees.memory}, std::pair{"pids", &subtrees.pids},
        std::pair{"cpu", &subtrees.cpu}, std::pair{"cpuacct", &subtrees.cpuacct}}) {
    const Mount* mount = find_v1(hierarchies, controller);
    if (mount == nullptr) {
      return in_stage<std::unique_ptr<Driver>>(host_lacks(
          "mountinfo", 0, std::string("no cgroup hierarchy has the controller ") + controller,
          "boot with systemd.unified_cgroup_hierarchy=1 (cgroup v2), or mount the v1 "
          "hierarchy (mount -t cgroup)"));
    }
    const auto [place, is_new] = seen.emplace(mount->path, subtrees.dirs.size());
    *index = place->second;
    if (!is_new) continue;
    SBX_ASSIGN(const GroupDir top, in_stage(GroupDir::open(mount->path, CGROUP_SUPER_MAGIC)));
    SBX_ASSIGN(GroupDir subtree, in_stage(open_subtree(top, options)));
    subtrees.dirs.push_back(std::move(subtree));
  }
  const bool memsw = subtrees.dirs[subtrees.memory].has("memory.memsw.limit_in_bytes");
  return std::unique_ptr<Driver>(std::make_unique<V1Driver>(std::move(subtrees), memsw));
}

}  // namespace sbx::cgroup
