// Pid 1 after the payload's start: reaps, answers seccomp notifications, and ends when the payload
// ends or the lifeline closes. Its own exit kills whatever is left in the pid namespace. Stage:
// child.
//
// SECURITY: the only data from the payload that init looks at are notified calls, and of those the
// number and the architecture alone; no argument is followed, so nothing can change under it.
#include <asm-generic/errno.h>
#include <asm/ioctl.h>
#include <linux/seccomp.h>

#include "runtime/child/context.h"
#include "runtime/child/facts.h"
#include "runtime/child/kernel.h"

namespace sbx::child {
namespace {

constexpr int kWaitNoHang = 1;
constexpr int kWaitAll = 0x40000000;  // __WALL: also children made without SIGCHLD
constexpr std::uint32_t kMaxSeen = 64;
// Of those, for calls answered with ENOSYS: numbers that nobody knows are without end, and must not
// take the places of calls that have a name (tests/unit/policy/data_test.cc counts those).
constexpr std::uint32_t kMaxSeenUnknown = 16;
// Larger than any kernel's struct seccomp_notif so far (80 bytes).
constexpr std::size_t kNotificationSize = 512;
constexpr std::uint32_t kX32Bit = 0x40000000;
constexpr std::uint32_t kAuditArchX86_64 = 0xc000003e;

struct SeenCall {
  std::uint32_t nr;
  std::uint32_t arch;
  std::uint64_t count;
};

struct Seen {
  SeenCall calls[kMaxSeen];
  std::uint32_t count;
  std::uint32_t unknown;
};
Seen seen;

void report_call(plan::RecordKind kind, const SeenCall& call) {
  plan::Record record;
  record.kind = kind;
  record.nr = call.nr;
  record.arch = call.arch;
  record.count = call.count;
  report(record);
}

// Running totals, told at powers of two, so that a flood costs the pipe almost nothing.
void count_denial(std::uint32_t nr, std::uint32_t arch, std::uint16_t action) {
  std::uint32_t i = 0;
  while (i < seen.count && (seen.calls[i].nr != nr || seen.calls[i].arch != arch)) ++i;
  if (i == kMaxSeen) return;  // the first 64 names are kept
  if (i == seen.count) {
    if (action == ENOSYS && seen.unknown++ >= kMaxSeenUnknown) return;
    seen.calls[seen.count++] = {nr, arch, 0};
  }
  SeenCall& call = seen.calls[i];
  ++call.count;
  if ((call.count & (call.count - 1)) == 0) report_call(plan::RecordKind::kDenied, call);
}

void report_totals() {
  for (std::uint32_t i = 0; i < seen.count; ++i) {
    const SeenCall& call = seen.calls[i];
    if ((call.count & (call.count - 1)) != 0) report_call(plan::RecordKind::kDenied, call);
  }
}

std::uint16_t action_for(const plan::FlatPlan& plan, std::uint32_t nr, std::uint32_t arch) {
  // On x86-64 the bit marks an x32 call, which shares the architecture; elsewhere it marks nothing.
  const bool x32 = arch == kAuditArchX86_64 && (nr & kX32Bit) != 0 && nr != ~0U;
  if (arch != plan.audit_arch || x32) return plan::kHostileAction;
  return nr < plan::kActionCount ? plan.actions[nr] : std::uint16_t{ENOSYS};
}

// Takes one notified call without answering it; false when there was none to take.
bool take_call(const Context& context, seccomp_notif*& request, unsigned char* buffer,
               std::size_t size) {
  memset(buffer, 0, size);
  request = reinterpret_cast<seccomp_notif*>(buffer);
  // ENOENT: the caller died meanwhile.
  return sys(__NR_ioctl, context.listener, SECCOMP_IOCTL_NOTIF_RECV, request) == 0;
}

[[noreturn]] void end_for(const SeenCall& hostile) {
  // First, and in this order: our exit closes the listener before the kernel kills the namespace,
  // and a call without a listener returns to its caller, which could go on for a moment.
  (void)sys(__NR_kill, -1, kSigkill);  // ESRCH: the caller died by itself meanwhile
  report_totals();
  report_call(plan::RecordKind::kHostile, hostile);
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
    const std::uint16_t action = action_for(*context.plan, nr, arch);
    if (action == plan::kHostileAction) end_for({nr, arch, 1});
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
  const std::uint16_t action = action_for(*context.plan, nr, arch);
  if (action == plan::kHostileAction) end_for({nr, arch, 1});
  count_denial(nr, arch, action);
  seccomp_notif_resp response{};
  response.id = request->id;
  response.error = -static_cast<std::int32_t>(action == 0 ? EPERM : action);
  (void)sys(__NR_ioctl, context.listener, SECCOMP_IOCTL_NOTIF_SEND, &response);  // ENOENT: as above
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
  plan::Record record;
  record.kind = plan::RecordKind::kEnded;
  record.status = payload_status;
  report(record);
  exit_now(0);
}

// Slots that this run left empty were free numbers: what the steps opened since may have got them.
void close_unneeded(const Context& context) {
  for (int fd = plan::kSlotStdin; fd < plan::kSlotCount; ++fd) {
    const bool needed = fd == plan::kSlotReport || fd == plan::kSlotLifeline ||
                        fd == context.listener || fd == context.proc;
    if (!needed) close_fd(fd);
  }
}

}  // namespace

void serve(Context& context) {
  close_unneeded(context);
  const std::uint64_t child_ended = std::uint64_t{1} << (kSigchld - 1);
  const int signals = static_cast<int>(
      sys(__NR_signalfd4, -1, &child_ended, sizeof child_ended, kOpenCloexec | kOpenNonblock));
  if (signals < 0) exit_now(1);
  PollFd fds[] = {
      {plan::kSlotLifeline, kPollIn, 0}, {signals, kPollIn, 0}, {context.listener, kPollIn, 0}};
  int payload_status = 0;
  // A payload that ended before the signalfd existed left its SIGCHLD pending: it is read below.
  for (;;) {
    const Word ready = sys(__NR_ppoll, fds, 3, nullptr, nullptr, 8);
    if (ready == -EINTR) continue;
    if (ready < 0) exit_now(1);
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
