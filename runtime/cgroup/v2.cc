#include "runtime/cgroup/v2.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/sys.h"
#include "runtime/cgroup/group_dir.h"
#include "runtime/cgroup/records.h"
#include "runtime/cgroup/v2_run.h"

namespace sbx::cgroup {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kSweepPatience(2000);
constexpr milliseconds kSpawnerPatience(200);

class V2Driver final : public Driver {
 public:
  V2Driver(V2Base base, const DriverOptions& options)
      : base_(std::move(base)),
        owner_uid_(options.owner_uid),
        owner_gid_(options.owner_gid),
        no_swap_(host_has_no_swap()) {}

  [[nodiscard]] std::string name() const override { return "v2"; }
  [[nodiscard]] std::string detail() const override {
    const char* swap = has_swap_limit() ? "swap limited"
                       : no_swap_       ? "host has no swap"
                                        : "swap not limited";
    return std::string("v2: memory pids cpu; ") + swap;
  }
  [[nodiscard]] bool swap_controlled() const override { return has_swap_limit() || no_swap_; }

  [[nodiscard]] bool has_spawner_leaf() const override { return true; }
  [[nodiscard]] Result<void> adopt_spawner(pid_t pid, std::string_view record) override {
    return in_stage(adopt(pid, record));
  }
  [[nodiscard]] Result<std::unique_ptr<CgroupRun>> create(std::string_view record,
                                                          const RunLimits& limits) override {
    SBX_TRY(in_stage(check_record(record)));
    const V2Owner owner{owner_uid_, owner_gid_, owner_uid_ != ::geteuid()};
    return in_stage(make_v2_run(base_.dir, std::string(record), limits, owner));
  }
  [[nodiscard]] Result<int> sweep(IsDead is_dead, void* context) override;
  void release_spawner(std::string_view record) override {
    // Called after its death; what is slower than that is the sweep's.
    (void)base_.dir.remove_child(leaf_name(record), steady_clock::now() + kSpawnerPatience);
  }

 private:
  [[nodiscard]] static std::string leaf_name(std::string_view record) {
    return std::string(record) + std::string(kSpawnerSuffix);
  }
  [[nodiscard]] bool has_swap_limit() const { return base_.dir.has("memory.swap.max"); }
  [[nodiscard]] Result<void> adopt(pid_t pid, std::string_view record) const;

  V2Base base_;
  uid_t owner_uid_;
  gid_t owner_gid_;
  bool no_swap_;
};

Result<void> V2Driver::adopt(pid_t pid, std::string_view record) const {
  SBX_TRY(check_record(record));
  SBX_ASSIGN(const GroupDir leaf, base_.dir.make_child(leaf_name(record)));
  return leaf.write("cgroup.procs", std::to_string(pid));
}

// A delegated base may hold groups of others too. What a run leaves has the shape that create()
// gives it: no process of its own, and no subgroups but the two leaves.
bool is_ours(const GroupDir& base, const std::string& name) {
  if (name.ends_with(kSpawnerSuffix)) return true;
  const auto group = base.open_child(name);
  if (!group) return false;
  const auto processes = group->read("cgroup.procs");
  const auto children = group->children();
  return processes && processes->empty() && children &&
         std::all_of(children->begin(), children->end(), [](const std::string& child) {
           return child == kInitLeaf || child == kPayloadLeaf;
         });
}

int sweep_base(const GroupDir& base, Driver::IsDead is_dead, void* context) {
  const auto children = base.children();
  if (!children) return 0;  // a neighbour's scope that ended meanwhile
  int removed = 0;
  for (const std::string& name : *children) {
    const std::string_view record = record_of(name);
    if (record.empty() || !is_ours(base, name) || !is_dead(record, context)) continue;
    const auto deadline = steady_clock::now() + kSweepPatience;
    if (kill_and_remove_v2(base, name, deadline)) ++removed;
  }
  return removed;
}

Result<int> V2Driver::sweep(IsDead is_dead, void* context) {
  int removed = sweep_base(base_.dir, is_dead, context);
  if (!base_.scopes) return removed;
  SBX_ASSIGN(const auto neighbours, in_stage(base_.scopes->children()));
  for (const std::string& name : neighbours) {
    if (!name.starts_with(kScopePrefix) || !name.ends_with(kScopeSuffix)) continue;
    const auto scope = base_.scopes->open_child(name);
    if (scope) removed += sweep_base(*scope, is_dead, context);
  }
  return removed;
}

}  // namespace

Result<void> kill_and_remove_v2(const GroupDir& parent, const std::string& name,
                                Deadline deadline) {
  const auto group = parent.open_child(name);
  if (!group) {
    if (group.error().sys_errno == ENOENT) return {};
    return group.error();
  }
  SBX_TRY(kill_and_wait_v2(*group, deadline));
  return parent.remove_child(name, deadline);
}

namespace {

// The caller goes to a leaf of the base, which is then below what the new owner may write, as
// CLONE_INTO_CGROUP wants it of the common ancestor; the spawner is born there.
Result<void> hand_over(const GroupDir& base, const DriverOptions& options) {
  SBX_TRY(base.delegate_to(options.owner_uid, options.owner_gid));
  auto leaf = base.make_child(std::string(kSupervisorLeaf));
  if (!leaf && leaf.error().sys_errno == EEXIST) {
    leaf = base.open_child(std::string(kSupervisorLeaf));
  }
  if (!leaf) return std::move(leaf).error();
  SBX_TRY(leaf->delegate_to(options.owner_uid, options.owner_gid));
  return leaf->write("cgroup.procs", "0");
}

}  // namespace

Result<std::unique_ptr<Driver>> make_v2_driver(V2Base base, const DriverOptions& options) {
  if (options.hand_over) {
    SBX_TRY(in_stage(hand_over(base.dir, options)));
    return std::unique_ptr<Driver>(std::make_unique<V2Driver>(std::move(base), options));
  }
  if (options.owner_uid != ::geteuid() &&
      ::fchownat(base.dir.fd(), "cgroup.procs", options.owner_uid, options.owner_gid,
                 AT_SYMLINK_NOFOLLOW) != 0) {
    return in_stage<std::unique_ptr<Driver>>(
        sys_error("fchownat", base.dir.path() + "/cgroup.procs"));
  }
  return std::unique_ptr<Driver>(std::make_unique<V2Driver>(std::move(base), options));
}

}  // namespace sbx::cgroup
