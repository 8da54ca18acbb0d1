#include "runtime/cgroup/v1_run.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/sys.h"
#include "runtime/cgroup/members.h"

namespace sbx::cgroup {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kPeriodUsec = 100'000;  // the kernel's default cpu.cfs_period_us
constexpr std::uint64_t kMinQuotaUsec = 1'000;  // the kernel refuses less
constexpr milliseconds kDestructorPatience(1000);
// How often, and how many times, the kill that follows an OOM event is looked for.
constexpr long kOomRetryNsec = 5'000'000;
constexpr int kOomRetries = 400;

class V1Run final : public CgroupRun {
 public:
  V1Run(const V1Subtrees& subtrees, std::string record)
      : subtrees_(subtrees), record_(std::move(record)) {}
  V1Run(const V1Run&) = delete;
  V1Run& operator=(const V1Run&) = delete;
  ~V1Run() override;

  [[nodiscard]] Result<void> make_groups();
  [[nodiscard]] Result<void> set_limits(const RunLimits& limits);
  [[nodiscard]] Result<void> watch_oom();

  [[nodiscard]] int init_leaf_fd() const override { return -1; }
  [[nodiscard]] int payload_leaf_fd() const override { return -1; }
  [[nodiscard]] const std::vector<int>& join_fds() const override { return join_fds_; }
  [[nodiscard]] std::size_t init_join_count() const override { return init_joins_; }
  [[nodiscard]] std::vector<EventFd> event_fds() const override {
    return {{oom_event_.get(), POLLIN}, {oom_timer_.get(), POLLIN}};
  }
  [[nodiscard]] bool oom_happened() override;
  [[nodiscard]] Result<std::uint64_t> cpu_usec() const override;
  [[nodiscard]] Result<Usage> usage() const override { return in_stage(read_usage()); }
  [[nodiscard]] Result<void> kill() override {
    return in_stage<void>(host_lacks("cgroup.kill", 0, "cgroup v1 cannot kill a group", ""));
  }
  [[nodiscard]] Result<void> lift_cpu_limit() override;
  [[nodiscard]] Result<void> remove(milliseconds patience) override;

 private:
  [[nodiscard]] const GroupDir& memory() const { return groups_[subtrees_.memory]; }
  [[nodiscard]] const GroupDir& pids() const { return groups_[subtrees_.pids]; }
  [[nodiscard]] const GroupDir& cpu() const { return groups_[subtrees_.cpu]; }
  [[nodiscard]] const GroupDir& cpuacct() const { return groups_[subtrees_.cpuacct]; }
  [[nodiscard]] Result<Usage> read_usage() const;

  const V1Subtrees& subtrees_;
  const std::string record_;
  std::vector<GroupDir> groups_;  // parallel to subtrees_.dirs
  std::vector<UniqueFd> tasks_;
  std::vector<int> join_fds_;  // tasks_, borrowed; those that init joins come first
  std::size_t init_joins_ = 0;
  bool cpu_limited_ = false;
  UniqueFd oom_event_;
  UniqueFd oom_timer_;
  int oom_retries_ = 0;
};

V1Run::~V1Run() {
  if (groups_.empty()) return;
  const auto deadline = steady_clock::now() + kDestructorPatience;
  // A destructor cannot report; the sweep finds what stays.
  for (const GroupDir& group : groups_) (void)kill_members(group, deadline);
  (void)remove(kDestructorPatience);
}

Result<void> V1Run::make_groups() {
  groups_.reserve(subtrees_.dirs.size());
  for (const GroupDir& subtree : subtrees_.dirs) {
    SBX_ASSIGN(GroupDir group, subtree.make_child(record_));
    groups_.push_back(std::move(group));
    // Not cgroup.procs: "0" in `tasks` moves the writing thread alone, which has no other, without
    // the global lock that moving a whole process takes (a third of a millisecond per run).
    SBX_ASSIGN(UniqueFd tasks, groups_.back().open_file("tasks", O_WRONLY));
    const std::size_t index = groups_.size() - 1;
    const bool payload_alone = index == subtrees_.memory || index == subtrees_.pids;
    if (payload_alone) {
      join_fds_.push_back(tasks.get());
    } else {
      join_fds_.insert(join_fds_.begin(), tasks.get());
      ++init_joins_;
    }
    tasks_.push_back(std::move(tasks));
  }
  return {};
}

Result<void> V1Run::set_limits(const RunLimits& limits) {
  if (limits.memory != 0) {
    const std::string bytes = std::to_string(limits.memory);
    SBX_TRY(memory().write("memory.limit_in_bytes", bytes));
    // memory + swap may not be below memory, so it comes second.
    if (memory().has("memory.memsw.limit_in_bytes")) {
      SBX_TRY(memory().write("memory.memsw.limit_in_bytes", bytes));
    }
    // Without swap accounting this is all there is; with it, it only spares useless attempts. A
    // kernel without the file is covered by Driver::swap_controlled().
    (void)memory().write("memory.swappiness", "0");
  }
  if (limits.pids != 0) SBX_TRY(pids().write("pids.max", std::to_string(limits.pids)));
  if (limits.cpus_milli != 0) {
    const auto quota = std::max(kMinQuotaUsec, limits.cpus_milli * kPeriodUsec / 1000);
    SBX_TRY(cpu().write("cpu.cfs_quota_us", std::to_string(quota)));
    cpu_limited_ = true;
  }
  return {};
}

// cgroup.event_control ties an eventfd to memory.oom_control (kernel: cgroup-v1/memory, "OOM
// Control").
Result<void> V1Run::watch_oom() {
  oom_event_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!oom_event_) return sys_error("eventfd");
  oom_timer_ = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!oom_timer_) return sys_error("timerfd_create");
  SBX_ASSIGN(const UniqueFd control, memory().open_file("memory.oom_control", O_RDONLY));
  return memory().write("cgroup.event_control",
                        std::to_string(oom_event_.get()) + " " + std::to_string(control.get()));
}

// The event comes before the kill is counted. So an event without a kill arms a timer that asks
// again, instead of blocking here or taking the event alone as proof.
bool V1Run::oom_happened() {
  std::uint64_t ticks = 0;
  const bool event = ::read(oom_event_.get(), &ticks, sizeof ticks) > 0;
  if (event) oom_retries_ = kOomRetries;
  (void)!::read(oom_timer_.get(), &ticks, sizeof ticks);  // only to make it unreadable
  if (groups_.empty()) return false;
  const auto kills = memory().read_key("memory.oom_control", "oom_kill");
  if (kills && *kills >= 1) return true;
  if (oom_retries_ > 0) {
    --oom_retries_;
    const itimerspec soon{{0, 0}, {0, kOomRetryNsec}};
    (void)::timerfd_settime(oom_timer_.get(), 0, &soon, nullptr);  // fails for bad arguments only
  }
  return false;
}

Result<std::uint64_t> V1Run::cpu_usec() const {
  if (groups_.empty()) return in_stage<std::uint64_t>(invalid("the groups were removed"));
  SBX_ASSIGN(const std::uint64_t nsec, in_stage(cpuacct().read_number("cpuacct.usage")));
  return nsec / 1000;
}

Result<Usage> V1Run::read_usage() const {
  if (groups_.empty()) return invalid("the groups were removed");
  Usage usage;
  SBX_ASSIGN(usage.cpu_usec, cpu_usec());
  SBX_ASSIGN(usage.memory_peak, memory().read_number("memory.max_usage_in_bytes"));
  SBX_ASSIGN(usage.oom_kills, memory().read_key("memory.oom_control", "oom_kill"));
  SBX_ASSIGN(usage.pids_refused, pids().read_key("pids.events", "max"));
  if (pids().has("pids.peak")) {
    SBX_ASSIGN(usage.pids_peak, pids().read_number("pids.peak"));
  }
  SBX_ASSIGN(const std::uint64_t throttled_nsec, cpu().read_key("cpu.stat", "throttled_time"));
  usage.throttled_usec = throttled_nsec / 1000;
  return usage;
}

Result<void> V1Run::lift_cpu_limit() {
  if (!cpu_limited_ || groups_.size() < subtrees_.dirs.size()) return {};
  cpu_limited_ = false;
  return in_stage(cpu().write("cpu.cfs_quota_us", "-1"));
}

Result<void> V1Run::remove(milliseconds patience) {
  const auto deadline = steady_clock::now() + patience;
  join_fds_.clear();
  tasks_.clear();
  // groups_ may be shorter than the list of subtrees when make_groups failed half-way.
  while (!groups_.empty()) {
    const GroupDir& subtree = subtrees_.dirs[groups_.size() - 1];
    SBX_TRY(in_stage(subtree.remove_child(record_, deadline)));
    groups_.pop_back();
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<CgroupRun>> make_v1_run(const V1Subtrees& subtrees,
                                               const std::string& record, const RunLimits& limits) {
  auto run = std::make_unique<V1Run>(subtrees, record);
  SBX_TRY(run->make_groups());
  SBX_TRY(run->set_limits(limits));
  SBX_TRY(run->watch_oom());
  return std::unique_ptr<CgroupRun>(std::move(run));
}

}  // namespace sbx::cgroup
