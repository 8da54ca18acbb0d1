#include "runtime/cgroup/v2_run.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "runtime/base/sys.h"
#include "runtime/cgroup/records.h"

namespace sbx::cgroup {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kPeriodUsec = 100'000;
constexpr std::uint64_t kMinQuotaUsec = 1'000;  // the kernel refuses less
constexpr milliseconds kDestructorPatience(1000);

// Reading from the start is also what makes the next poll(POLLPRI) wait for news.
Result<std::string> reread(int fd) {
  std::array<char, 4096> text;
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  if (got < 0) return sys_error("pread");
  return std::string(text.data(), static_cast<std::size_t>(got));
}

// A group that someone else removed (a sweep) answers with these.
Result<void> unless_gone(const Error& error) {
  if (error.sys_errno == ENOENT || error.sys_errno == ENODEV) return {};
  return error;
}

class V2Run final : public CgroupRun {
 public:
  V2Run(const GroupDir& base, std::string record) : base_(base), record_(std::move(record)) {}
  V2Run(const V2Run&) = delete;
  V2Run& operator=(const V2Run&) = delete;
  // A destructor cannot report; the sweep finds what stays.
  ~V2Run() override { (void)remove(kDestructorPatience); }

  [[nodiscard]] Result<void> make_groups(const V2Owner& owner);
  [[nodiscard]] Result<void> set_limits(const RunLimits& limits);
  [[nodiscard]] Result<void> watch_oom();

  [[nodiscard]] int init_leaf_fd() const override { return init_.fd(); }
  [[nodiscard]] int payload_leaf_fd() const override { return payload_.fd(); }
  [[nodiscard]] const std::vector<int>& join_fds() const override { return join_fds_; }
  [[nodiscard]] std::vector<EventFd> event_fds() const override {
    return {{memory_events_.get(), POLLPRI}};
  }
  [[nodiscard]] bool oom_happened() override;
  [[nodiscard]] Result<std::uint64_t> cpu_usec() const override {
    return in_stage(payload_.read_key("cpu.stat", "usage_usec"));
  }
  [[nodiscard]] Result<Usage> usage() const override { return in_stage(read_usage()); }
  [[nodiscard]] Result<void> kill() override {
    return in_stage(payload_.write("cgroup.kill", "1"));
  }
  [[nodiscard]] Result<void> lift_cpu_limit() override;
  [[nodiscard]] Result<void> remove(milliseconds patience) override;

 private:
  [[nodiscard]] Result<Usage> read_usage() const;
  [[nodiscard]] Result<void> remove_groups(Deadline deadline);

  const GroupDir& base_;
  const std::string record_;
  GroupDir run_;
  GroupDir init_;
  GroupDir payload_;
  UniqueFd memory_events_;
  const std::vector<int> join_fds_;  // always empty here
  bool cpu_limited_ = false;
};

Result<void> V2Run::make_groups(const V2Owner& owner) {
  SBX_ASSIGN(run_, base_.make_child(record_));
  SBX_TRY(run_.write("cgroup.subtree_control", "+memory +pids"));
  SBX_ASSIGN(init_, run_.make_child(kInitLeaf));
  SBX_ASSIGN(payload_, run_.make_child(kPayloadLeaf));
  if (!owner.differs) return {};
  for (const GroupDir* dir : {&run_, &init_, &payload_}) {
    SBX_TRY(dir->delegate_to(owner.uid, owner.gid));
  }
  return {};
}

Result<void> V2Run::set_limits(const RunLimits& limits) {
  if (limits.cpus_milli != 0) {
    const auto quota = std::max(kMinQuotaUsec, limits.cpus_milli * kPeriodUsec / 1000);
    SBX_TRY(run_.write("cpu.max", std::to_string(quota) + " " + std::to_string(kPeriodUsec)));
    cpu_limited_ = true;
  }
  if (limits.memory != 0) {
    SBX_TRY(payload_.write("memory.max", std::to_string(limits.memory)));
    // Missing where swap accounting is off; Driver::swap_controlled() tells.
    if (payload_.has("memory.swap.max")) SBX_TRY(payload_.write("memory.swap.max", "0"));
    SBX_TRY(payload_.write("memory.oom.group", "1"));
  }
  if (limits.pids != 0) SBX_TRY(payload_.write("pids.max", std::to_string(limits.pids)));
  return {};
}

Result<void> V2Run::watch_oom() {
  SBX_ASSIGN(memory_events_, payload_.open_file("memory.events", O_RDONLY));
  SBX_TRY(reread(memory_events_.get()));  // what happened before is seen
  return {};
}

bool V2Run::oom_happened() {
  const auto text = reread(memory_events_.get());
  return text && find_key(*text, "oom_kill").value_or(0) >= 1;
}

Result<Usage> V2Run::read_usage() const {
  Usage usage;
  SBX_ASSIGN(usage.cpu_usec, payload_.read_key("cpu.stat", "usage_usec"));
  SBX_ASSIGN(usage.oom_kills, payload_.read_key("memory.events", "oom_kill"));
  SBX_ASSIGN(usage.pids_refused, payload_.read_key("pids.events", "max"));
  SBX_ASSIGN(usage.throttled_usec, run_.read_key("cpu.stat", "throttled_usec"));
  // Not in every kernel: 5.19 and 6.1.
  if (payload_.has("memory.peak")) {
    SBX_ASSIGN(usage.memory_peak, payload_.read_number("memory.peak"));
  }
  if (payload_.has("pids.peak")) {
    SBX_ASSIGN(usage.pids_peak, payload_.read_number("pids.peak"));
  }
  return usage;
}

Result<void> V2Run::lift_cpu_limit() {
  if (!cpu_limited_ || !run_.valid()) return {};
  cpu_limited_ = false;
  return in_stage(run_.write("cpu.max", "max"));
}

Result<void> V2Run::remove(milliseconds patience) {
  if (!run_.valid()) return {};
  return in_stage(remove_groups(steady_clock::now() + patience));
}

Result<void> V2Run::remove_groups(Deadline deadline) {
  SBX_TRY(kill_and_wait_v2(run_, deadline));
  SBX_TRY(run_.remove_child(kPayloadLeaf, deadline));
  SBX_TRY(run_.remove_child(kInitLeaf, deadline));
  SBX_TRY(base_.remove_child(record_, deadline));
  run_ = GroupDir();
  return {};
}

}  // namespace

Result<void> kill_and_wait_v2(const GroupDir& group, Deadline deadline) {
  const auto events = group.open_file("cgroup.events", O_RDONLY);
  if (!events) return unless_gone(events.error());
  for (bool killed = false;; killed = true) {
    const auto text = reread(events->get());
    if (!text) return unless_gone(text.error());
    if (find_key(*text, "populated") == 0U) return {};
    if (!killed) SBX_TRY(group.write("cgroup.kill", "1"));
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0) {
      errno = EBUSY;
      return sys_error("cgroup.kill", group.path() + " still has processes");
    }
    pollfd wait{events->get(), POLLPRI, 0};
    (void)::poll(&wait, 1, static_cast<int>(left));  // time-out and EINTR: the loop looks again
  }
}

Result<std::unique_ptr<CgroupRun>> make_v2_run(const GroupDir& base, const std::string& record,
                                               const RunLimits& limits, const V2Owner& owner) {
  auto run = std::make_unique<V2Run>(base, record);
  SBX_TRY(run->make_groups(owner));
  SBX_TRY(run->set_limits(limits));
  SBX_TRY(run->watch_oom());
  return std::unique_ptr<CgroupRun>(std::move(run));
}

}  // namespace sbx::cgroup
