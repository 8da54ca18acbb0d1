// Pid 1 after the payload's start: reaps, answers seccomp notifications, and ends when the payload
// ends or the lifeline closes. Its own exit kills whatever is left in the pid namespace. Stage:
// child.
//
// SECURITY: the only data from the payload that init looks at are notified calls, and of those the
// number, the architecture and, of fcntl, flock and clone, the command or the flags; no argument is
// followed, so nothing can change under it. The only calls that it lets go on take file locks,
// while there is room for more (locks.h): whatever becomes of one, its number and command stay
// those that the kernel has shown.
#include <asm-generic/errno.h>
#include <asm/ioctl.h>
#include <linux/seccomp.h>

#include "runtime/child/context.h"
#include "runtime/child/facts.h"
#include "runtime/child/kernel.h"
#include "runtime/child/locks.h"

namespace sbx::child {
namespace {

constexpr int kWaitNoHang = 1;
constexpr int kWaitAll = 0x40000000;  // __WALL: also children made without SIGCHLD
constexpr std::uint32_t kMaxSeen = 64;
// Of those, for numbers that the policy does not name: they are without end, and must not take the
// places of calls that have a name (tests/unit/policy/data_test.cc counts those).
constexpr std::uint32_t kMaxSeenUnknown = 12;
// After so long without a call, what has not been told is: a killed init tells nothing more.
constexpr std::uint64_t kIdleNanoseconds = 10'000'000;
constexpr Word kUnreadBytes = 0x541b;  // FIONREAD
// Larger than any kernel's struct seccomp_notif so far (80 bytes).
constexpr std::size_t kNotificationSize = 512;
constexpr std::uint32_t kX32Bit = 0x40000000;
constexpr std::uint32_t kAuditArchX86_64 = 0xc000003e;

struct SeenCall {
  std::uint32_t nr;
  std::uint32_t arch;
  std::uint64_t count;
  std::uint64_t told;
};

struct Seen {
  SeenCall calls[kMaxSeen];
  std::uint32_t count;
  std::uint32_t unknown;
  std::uint64_t unlisted, unlisted_told;  // calls that found no place
  bool untold;
};
Seen seen;

bool told_of_locks = false;

// What ends all says by it whether the totals before could all be told, and when it was: a
// supervisor that is stopped meanwhile reads it late.
plan::Record last_record(plan::RecordKind kind) {
  plan::Record record;
  record.kind = kind;
  record.error = seen.untold ? EAGAIN : 0;
  record.count = monotonic_now();
  return record;
}

// What the pipe does not take is told later.
void tell(SeenCall& call) {
  plan::Record record;
  record.kind = plan::RecordKind::kDenied;
  record.nr = call.nr;
  record.arch = call.arch;
  record.count = call.count;
  if (report(record)) {
    call.told = call.count;
  } else {
    seen.untold = true;
  }
}

void tell_unlisted() {
  plan::Record record;
  record.kind = plan::RecordKind::kInformation;
  record.step = Step::kFactUnlisted;
  record.count = seen.unlisted;
  if (report(record)) {
    seen.unlisted_told = seen.unlisted;
  } else {
    seen.untold = true;
  }
}

// Once: that a file lock was refused.
void tell_of_locks(const Context& context) {
  if (told_of_locks) return;
  plan::Record record;
  record.kind = plan::RecordKind::kInformation;
  record.step = Step::kFactRecordLocks;
  record.count = context.plan->lock_limit;
  told_of_locks = report(record);
}

// A place for a call that has none yet; null when there is none left for it.
SeenCall* new_place(std::uint32_t nr, std::uint32_t arch, std::uint16_t action) {
  if (seen.count == kMaxSeen) return nullptr;
  if (action == plan::kUnknownAction && seen.unknown++ >= kMaxSeenUnknown) {
    seen.unknown = kMaxSeenUnknown;
    return nullptr;
  }
  seen.calls[seen.count] = {nr, arch, 0, 0};
  return &seen.calls[seen.count++];
}

// Running totals, told at powers of two, so that a flood costs the pipe almost nothing.
void count_denial(std::uint32_t nr, std::uint32_t arch, std::uint16_t action) {
  SeenCall* call = nullptr;
  for (std::uint32_t i = 0; i < seen.count && call == nullptr; ++i) {
    if (seen.calls[i].nr == nr && seen.calls[i].arch == arch) call = &seen.calls[i];
  }
  if (call == nullptr) call = new_place(nr, arch, action);
  std::uint64_t& count = call == nullptr ? seen.unlisted : call->count;
  ++count;
  if ((count & (count - 1)) != 0) {
    seen.untold = true;
  } else if (call != nullptr) {
    tell(*call);
  } else {
    tell_unlisted();
  }
}

void report_totals() {
  if (!seen.untold) return;
  seen.untold = false;
  for (std::uint32_t i = 0; i < seen.count; ++i) {
    if (seen.calls[i].told != seen.calls[i].count) tell(seen.calls[i]);
  }
  if (seen.unlisted_told != seen.unlisted) tell_unlisted();
}

// In a pause, and only into an empty pipe: while the supervisor reads nothing, a program that calls
// and pauses would else fill it, and the last records be lost.
void report_totals_in_pause() {
  int unread = 0;
  if (sys(__NR_ioctl, plan::kSlotReport, kUnreadBytes, &unread) == 0 && unread == 0) {
    report_totals();
  }
}

std::uint16_t action_for(const plan::FlatPlan& plan, const seccomp_data& call) {
  const std::uint32_t nr = static_cast<std::uint32_t>(call.nr);
  const std::uint32_t arch = call.arch;
  // On x86-64 the bit marks an x32 call, which shares the architecture; elsewhere it marks nothing.
  const bool x32 = arch == kAuditArchX86_64 && (nr & kX32Bit) != 0 && nr != ~0U;
  if (arch != plan.audit_arch || x32) return plan::kHostileAction;
  const std::uint16_t action = nr < plan::kActionCount ? plan.actions[nr] : plan::kUnknownAction;
  const bool hostile = action == plan::kNamespaceAction &&
                       plan::asks_for_namespace(static_cast<std::uint32_t>(call.args[0]));
  return hostile ? plan::kHostileAction : action;
}

std::int32_t errno_for(std::uint16_t action) {
  switch (action) {
    case plan::kUnknownAction:
      return ENOSYS;
    case plan::kRecordLockAction:
    case plan::kFlockAction:
    case plan::kNamespaceAction:
      return EINVAL;
    case 0:
      return EPERM;
    default:
      return action;
  }
}

// Takes one notified call without answering it; false when there was none to take.
bool take_call(const Context& context, seccomp_notif*& request, unsigned char* buffer,
               std::size_t size) {
  memset(buffer, 0, size);
  request = reinterpret_cast<seccomp_notif*>(buffer);
  // ENOENT: the caller died meanwhile.
  return sys(__NR_ioctl, context.listener, SECCOMP_IOCTL_NOTIF_RECV, request) == 0;
}

// The supervisor, whose business it is, did not: it was stopped, or comes late to everything.
[[noreturn]] void end_at_wall_limit() {
  (void)sys(__NR_kill, -1, kSigkill);
  report_totals();
  (void)report(last_record(plan::RecordKind::kWallLimit));
  exit_now(0);
}

[[noreturn]] void end_for(const SeenCall& hostile) {
  // First, and in this order: our exit closes the listener before the kernel kills the namespace,
  // and a call without a listener returns to its caller, which could go on for a moment.
  (void)sys(__NR_kill, -1, kSigkill);  // ESRCH: the caller died by itself meanwhile
  report_totals();
  plan::Record record = last_record(plan::RecordKind::kHostile);
  record.nr = hostile.nr;
  record.arch = hostile.arch;
  (void)report(record);
  exit_now(0);
}

// The payload has ended, and others may have calls waiting: evidence, and never to be answered now.
// Each process has at most one call that waits, and none of those taken here goes on, so this ends.
void drain_calls(const Context& context) {
  alignas(8) unsigned char buffer[kNotificationSize];
  for (;;) {
    PollFd listener{context.listener, kPollIn, 0};
    const KernelTimespec now{0, 0};
    if (sys(__NR_ppoll, &listener, 1, &now, nullptr, 8) <= 0) return;
    if ((listener.revents & kPollIn) == 0) return;
    seccomp_notif* request = nullptr;
    if (!take_call(context, request, buffer, sizeof buffer)) continue;
    const std::uint32_t nr = static_cast<std::uint32_t>(request->data.nr);
    const std::uint32_t arch = request->data.arch;
    const std::uint16_t action = action_for(*context.plan, request->data);
    if (action == plan::kHostileAction) end_for({nr, arch, 1, 0});
    if (lock_call(context, action, *request) != LockCall::kNone) continue;  // no denial
    count_denial(nr, arch, action);
  }
}

// One notification. A hostile call is never answered: its caller dies inside it.
void answer(Context& context) {
  alignas(8) unsigned char buffer[kNotificationSize];
  seccomp_notif* request = nullptr;
  if (!take_call(context, request, buffer, sizeof buffer)) return;
  const std::uint32_t nr = static_cast<std::uint32_t>(request->data.nr);
  const std::uint32_t arch = request->data.arch;
  const std::uint16_t action = action_for(*context.plan, request->data);
  if (action == plan::kHostileAction) end_for({nr, arch, 1, 0});
  seccomp_notif_resp response{};
  response.id = request->id;
  const LockCall lock = lock_call(context, action, *request);
  const bool goes_on = lock != LockCall::kNone && has_room(context, lock);
  if (goes_on) {
    response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  } else {
    if (lock != LockCall::kNone) tell_of_locks(context);
    count_denial(nr, arch, action);
    response.error = lock != LockCall::kNone ? -ENOLCK : -errno_for(action);
  }
  // ENOENT: as above, or a signal took the call back, and it comes again.
  const Word sent = sys(__NR_ioctl, context.listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
  if (goes_on && sent == 0) count_lock(lock);
}

// Everything that has ended; true when the payload itself did, with its status.
bool reap(const Context& context, int& payload_status) {
  bool ended = false;
  for (;;) {
    int status = 0;
    const Word pid = sys(__NR_wait4, -1, &status, kWaitNoHang | kWaitAll, nullptr);
    if (pid <= 0) return ended;
    if (pid == context.payload_pid) {
      payload_status = status;
      ended = true;
    }
  }
}

[[noreturn]] void finish(Context& context, int payload_status) {
  if (context.listener >= 0) drain_calls(context);
  report_facts(context);  // says what was left, so before the kill
  (void)sys(__NR_kill, -1, kSigkill);
  report_totals();
  plan::Record record = last_record(plan::RecordKind::kEnded);
  record.status = payload_status;
  (void)report(record);
  exit_now(0);
}

KernelTimespec timespec_of(std::uint64_t nanoseconds) {
  return {static_cast<std::int64_t>(nanoseconds / kNanosecondsPerSecond),
          static_cast<std::int64_t>(nanoseconds % kNanosecondsPerSecond)};
}

// Slots that this run left empty were free numbers: what the steps opened since may have got them.
void close_unneeded(const Context& context) {
  for (int fd = plan::kSlotStdin; fd < plan::kSlotCount; ++fd) {
    const bool needed = fd == plan::kSlotReport || fd == plan::kSlotLifeline ||
                        fd == context.listener || fd == context.network || fd == context.locks;
    if (!needed) close_fd(fd);
  }
}

}  // namespace

void serve(Context& context) {
  prepare_facts(context);
  close_unneeded(context);
  const std::uint64_t child_ended = std::uint64_t{1} << (kSigchld - 1);
  const int signals = static_cast<int>(
      sys(__NR_signalfd4, -1, &child_ended, sizeof child_ended, kOpenCloexec | kOpenNonblock));
  if (signals < 0) exit_now(1);
  PollFd fds[] = {
      {plan::kSlotLifeline, kPollIn, 0}, {signals, kPollIn, 0}, {context.listener, kPollIn, 0}};
  int payload_status = 0;
  const std::uint64_t deadline = monotonic_now() + context.plan->wall_nanoseconds;
  // A payload that ended before the signalfd existed left its SIGCHLD pending: it is read below.
  for (;;) {
    const std::uint64_t now = monotonic_now();
    if (now >= deadline) end_at_wall_limit();
    const bool look_soon = seen.untold && deadline - now > kIdleNanoseconds;
    const KernelTimespec wait = timespec_of(look_soon ? kIdleNanoseconds : deadline - now);
    const Word ready = sys(__NR_ppoll, fds, 3, &wait, nullptr, 8);
    if (ready == -EINTR) continue;
    if (ready < 0) exit_now(1);
    if (ready == 0 && look_soon) report_totals_in_pause();
    if (fds[0].revents != 0) exit_now(0);
    // Before the reaping; what else is waiting when the payload ends is taken by finish().
    if ((fds[2].revents & kPollIn) != 0)
      answer(context);
    else if (fds[2].revents != 0)
      fds[2].fd = -1;  // POLLHUP: nobody is left under the filter
    if (fds[1].revents != 0) {
      unsigned char information[128];
      (void)sys(__NR_read, signals, information, sizeof information);
      if (reap(context, payload_status)) finish(context, payload_status);
    }
  }
}

}  // namespace sbx::child
