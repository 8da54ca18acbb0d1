// From a Plan to the block that sbx-init reads: every string terminated, every number formatted.
#include <sched.h>
#include <time.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "runtime/plan/plan.h"

namespace sbx::plan {
namespace {

// What a supervisor on a busy host may be late with the wall limit, before init ends the run.
constexpr std::chrono::seconds kWallGrace{2};

// What tests of a filter go by, the policy's, and what init does, the plan's, are one.
consteval bool decisions_are_equal() {
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    const std::uint32_t flag = std::uint32_t{1} << bit;
    if (policy::asks_for_namespace(flag) != asks_for_namespace(flag)) return false;
  }
  for (std::uint32_t command = 0; command < 2048; ++command) {
    if (policy::is_record_lock(command) != is_record_lock(command)) return false;
    if (policy::is_flock(command) != is_flock(command)) return false;
  }
  return policy::kActionRecordLocks == kRecordLockAction && policy::kActionFlocks == kFlockAction &&
         policy::kActionNamespaces == kNamespaceAction;
}

// Collects the blob behind the struct. Offsets count from the start of the block.
class Blob {
 public:
  Span text(std::string_view value) {
    const Span span{offset(), static_cast<std::uint32_t>(value.size())};
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    bytes_.push_back(0);
    return span;
  }

  Span aligned(const void* data, std::size_t size) {
    while (bytes_.size() % 8 != 0) bytes_.push_back(0);
    const Span span{offset(), static_cast<std::uint32_t>(size)};
    const auto* from = static_cast<const std::uint8_t*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
    return span;
  }

  // An array of offsets, ended by zero; init adds its mapping's address to each.
  Span strings(const std::vector<std::string>& values) {
    std::vector<std::uint64_t> slots;
    slots.reserve(values.size() + 1);
    for (const std::string& value : values) slots.push_back(text(value).offset);
    slots.push_back(0);
    return aligned(slots.data(), slots.size() * sizeof slots[0]);
  }

  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  [[nodiscard]] std::uint32_t offset() const {
    return static_cast<std::uint32_t>(sizeof(FlatPlan) + bytes_.size());
  }
  std::vector<std::uint8_t> bytes_;
};
static_assert(sizeof(FlatPlan) % 8 == 0, "aligned() counts from a multiple of 8");

std::string_view relative(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  return path;
}

template <std::size_t N, typename Item, typename Source, typename Convert>
Result<void> fill_table(Item (&table)[N], std::uint32_t& count, const Source& source,
                        const char* name, Convert convert) {
  if (source.size() > N) {
    return invalid(std::string("plan table ") + name + " holds at most " + std::to_string(N));
  }
  for (const auto& item : source) table[count++] = convert(item);
  return {};
}

// Uptime inside starts near zero: the offsets are minus what the clocks say now.
std::string time_offsets() {
  timespec monotonic{};
  timespec boot{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  (void)::clock_gettime(CLOCK_BOOTTIME, &boot);
  return "monotonic -" + std::to_string(monotonic.tv_sec) + " 0\nboottime -" +
         std::to_string(boot.tv_sec) + " 0\n";
}

// The CPUs that the caller may use, by number: he may have been given others than the first ones.
std::vector<std::uint32_t> own_cpus() {
  std::vector<std::uint32_t> numbers;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return numbers;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) numbers.push_back(cpu);
  }
  return numbers;
}

// Where init finds the mount that the spawner made; 0: init makes it.
int slot_of(const TmpfsMount& mount) {
  if (mount.collected) return kSlotOutput;
  return mount.saved ? kSlotWork : 0;
}

FlatTmpfs flat_tmpfs(Blob& blob, const TmpfsMount& mount, const LaunchFacts& facts) {
  FlatTmpfs flat;
  flat.target = blob.text(relative(mount.target));
  flat.size = blob.text(std::to_string(mount.size));
  flat.inodes = blob.text(std::to_string(mount.inodes));
  flat.mode = blob.text(mount.mode);
  if (mount.payload_owns) flat.uid = blob.text(std::to_string(facts.payload_id));
  flat.passed = static_cast<std::uint32_t>(slot_of(mount));
  flat.noexec = mount.noexec ? 1 : 0;
  flat.read_only = mount.read_only ? 1 : 0;
  if (!mount.limit.empty()) flat.limit = blob.text(mount.limit);
  return flat;
}

FlatBind flat_bind(Blob& blob, const HostBind& bind) {
  FlatBind flat;
  flat.source = blob.text(bind.source);
  flat.target = blob.text(bind.target);
  flat.directory = bind.directory ? 1 : 0;
  flat.optional = bind.optional ? 1 : 0;
  return flat;
}

Result<void> flatten_files(FlatPlan& flat, Blob& blob, const Plan& plan, const LaunchFacts& facts) {
  flat.hostname = blob.text(plan.hostname);
  flat.rootfs = blob.text(plan.image.rootfs);
  SBX_TRY(fill_table(flat.tmpfs, flat.tmpfs_count, plan.tmpfs, "tmpfs",
                     [&](const TmpfsMount& mount) { return flat_tmpfs(blob, mount, facts); }));
  flat.shm = flat_tmpfs(blob, plan.shm, facts);
  SBX_TRY(fill_table(flat.binds, flat.bind_count, plan.binds, "binds",
                     [&](const HostBind& bind) { return flat_bind(blob, bind); }));
  SBX_TRY(fill_table(flat.devices, flat.device_count, plan.devices, "devices",
                     [&](const std::string& name) {
                       return flat_bind(blob, {.source = "/dev/" + name, .target = name});
                     }));
  const auto link = [&](const std::pair<std::string, std::string>& entry) {
    return FlatSymlink{blob.text(entry.second), blob.text(relative(entry.first))};
  };
  SBX_TRY(fill_table(flat.symlinks, flat.symlink_count, plan.symlinks, "symlinks", link));
  const auto path = [&](const std::string& value) { return blob.text(relative(value)); };
  SBX_TRY(
      fill_table(flat.directories, flat.directory_count, plan.directories, "directories", path));
  SBX_TRY(fill_table(flat.files, flat.file_count, plan.files, "files", [&](const auto& entry) {
    return FlatFile{blob.text(entry.first), blob.text(entry.second)};
  }));
  return fill_table(flat.masks, flat.mask_count, plan.masks, "masks", [&](const Mask& mask) {
    return FlatMask{blob.text(mask.path), mask.kind, blob.text(mask.content)};
  });
}

Result<void> flatten_process(FlatPlan& flat, Blob& blob, const Plan& plan,
                             const LaunchFacts& facts) {
  flat.join_count = facts.join_count;
  flat.init_join_count = facts.init_join_count;
  flat.has_payload_leaf = facts.payload_leaf ? 1 : 0;
  flat.has_fill = plan.fill.empty() && !plan.workspace ? 0 : 1;
  flat.has_netns = plan.net_namespace ? 1 : 0;
  flat.clear_groups = plan.ids == IdMode::kSingle ? 0 : 1;
  flat.payload_id = facts.payload_id;
  const std::string map = "65534 " + std::to_string(facts.payload_id) + " 1";
  flat.uid_map = blob.text(map);
  flat.gid_map = blob.text(map);
  flat.time_offsets = blob.text(time_offsets());
  // Spread over the host's CPUs by id, so that runs limited to one do not all share the first.
  const std::vector<std::uint32_t> own = own_cpus();
  for (std::uint32_t i = 0; i < plan.visible_cpus; ++i) {
    const std::uint32_t index = (facts.payload_id + i) % plan.host_cpus;
    const std::uint32_t cpu = index < own.size() ? own[index] : index;
    if (cpu < 1024) flat.cpu_mask[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
  }
  SBX_TRY(fill_table(
      flat.rlimits, flat.rlimit_count, plan.rlimits, "rlimits",
      [](const Rlimit& limit) { return FlatRlimit{limit.resource, 0, limit.value, limit.value}; }));
  SBX_TRY(fill_table(flat.writable, flat.writable_count, plan.writable, "writable",
                     [&](const std::string& directory) { return blob.text(directory); }));
  flat.audit_arch = plan.policy.seccomp.audit_arch;
  flat.bpf = blob.aligned(plan.policy.seccomp.bpf.data(), plan.policy.seccomp.bpf.size());
  static_assert(policy::kSyscallTableSize == kActionCount &&
                policy::kActionHostile == kHostileAction &&
                policy::kActionUnknown == kUnknownAction && decisions_are_equal());
  std::memcpy(flat.actions, plan.policy.seccomp.actions.data(), sizeof flat.actions);
  flat.lock_limit = plan.lock_limit;
  flat.wall_nanoseconds = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(plan.policy.limits.wall_seconds + kWallGrace).count());
  flat.work_directory = blob.text(plan.work_directory);
  SBX_TRY(fill_table(flat.exec_paths, flat.exec_path_count, plan.exec_paths, "exec paths",
                     [&](const std::string& candidate) { return blob.text(candidate); }));
  flat.argv_count = static_cast<std::uint32_t>(plan.argv.size());
  flat.argv = blob.strings(plan.argv);
  flat.envp_count = static_cast<std::uint32_t>(plan.env.size());
  flat.envp = blob.strings(plan.env);
  return {};
}

}  // namespace

Result<std::vector<std::uint8_t>> flatten(const Plan& plan, const LaunchFacts& facts) {
  FlatPlan flat{};
  Blob blob;
  flat.skip = plan.skip;
  flat.may_fail = plan.may_fail;
  flat.inject = facts.inject;
  flat.weaken = facts.weaken;
  SBX_TRY(flatten_files(flat, blob, plan, facts));
  SBX_TRY(flatten_process(flat, blob, plan, facts));
  flat.total_size = static_cast<std::uint32_t>(sizeof flat + blob.bytes().size());
  std::vector<std::uint8_t> block(flat.total_size);
  std::memcpy(block.data(), &flat, sizeof flat);
  std::memcpy(block.data() + sizeof flat, blob.bytes().data(), blob.bytes().size());
  return block;
}

PassedTmpfs passed_tmpfs(const Plan& plan, const LaunchFacts& facts, int slot) {
  for (const TmpfsMount& mount : plan.tmpfs) {
    if (slot_of(mount) != slot) continue;
    return {std::to_string(mount.size), std::to_string(mount.inodes), mount.mode,
            std::to_string(facts.payload_id)};
  }
  return {};
}

}  // namespace sbx::plan
