// Steps of pid 1 that are not mounts. docs/child-setup.md has the whole order with its reasons.
#include <asm-generic/errno.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/securebits.h>

#include "runtime/child/context.h"
#include "runtime/child/kernel.h"

namespace sbx::child {

// First: a session of our own means no controlling terminal, whatever the caller's was.
Word new_session(Context&) {
  return sys(__NR_setsid);
}

// Before anything that takes time: from here on the spawner's death is ours.
Word die_with_parent(Context&) {
  return sys(__NR_prctl, PR_SET_PDEATHSIG, kSigkill, 0, 0, 0);
}

// Before the payload exists: no ptrace, no /proc/1/mem, also where both have the same uid.
Word not_dumpable(Context&) {
  return sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// After PDEATHSIG: a supervisor that died before it is seen here (getppid is always 0 in a new pid
// namespace). Readable means end of file; nothing is ever written to the lifeline.
Word check_lifeline(Context&) {
  PollFd lifeline{plan::kSlotLifeline, kPollIn, 0};
  const KernelTimespec now{0, 0};
  const Word ready = sys(__NR_ppoll, &lifeline, 1, &now, nullptr, 8);
  if (ready < 0) return ready;
  return ready == 0 ? 0 : -EOWNERDEAD;
}

// While we still have CAP_SYS_ADMIN over the outer user namespace, which owns the net namespace.
// Before the mounts: nothing below needs a network.
Word join_net_namespace(Context& context) {
  if (context.plan->has_netns == 0) return -ENOENT;
  return sys(__NR_setns, plan::kSlotNetns, CLONE_NEWNET);
}

Word set_hostname(Context& context) {
  const char* name = context.text(context.plan->hostname);
  if (const Word result = sys(__NR_sethostname, name, context.plan->hostname.size); result < 0) {
    return result;
  }
  return sys(__NR_setdomainname, "(none)", 6);
}

// Offsets can be written only before a process enters the namespace, and only through unshare. The
// payload enters it at exec: uptime starts near 0. Planned from Linux 6.3 on, since kernels before
// it refuse a clone with shared memory after this.
Word new_time_namespace(Context& context) {
  if (const Word result = sys(__NR_unshare, CLONE_NEWTIME); result < 0) return result;
  const Span offsets = context.plan->time_offsets;
  return write_proc(context, "self/timens_offsets", context.text(offsets), offsets.size);
}

// SIGCHLD is read through a signalfd, so init needs no handler: where it shares its uid with the
// payload, a signal without a handler cannot reach pid 1 from inside.
Word block_signals(Context&) {
  const std::uint64_t all = ~std::uint64_t{0};
  return sys(__NR_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, nullptr, sizeof all);
}

// Shares memory (no page table to copy) and the descriptor table (the seccomp listener appears in
// ours); init is stopped until the payload has exec'ed or died. Straight into its cgroup leaf on
// v2.
Word start_payload(Context& context) {
  CloneArgs args;
  args.flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_CLEAR_SIGHAND;
  args.exit_signal = kSigchld;
  if (context.plan->has_payload_leaf != 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(plan::kSlotPayloadLeaf);
  }
  const Word pid = clone_on_stack(args, run_payload, &context);
  if (pid < 0) return pid;
  context.payload_pid = pid;
  if (context.late_error != 0) {
    plan::Record record;
    record.kind = plan::RecordKind::kStepFailed;
    record.step = context.late_step;
    record.error = context.late_error;
    report(record);
  }
  return 0;
}

// After the payload's exec: init needs nothing more than to wait, answer, report, and kill what
// makes a hostile call. CAP_KILL (in the outer namespace) is for that: the payload has another uid,
// and init sees no process beyond its own pid namespace. The payload's changes of uid marked our
// shared memory dumpable, hence "again".
Word drop_init(Context&) {
  for (int capability = 0; capability <= kLastCapability; ++capability) {
    const Word result = sys(__NR_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0);
    if (result == -EINVAL) break;  // past the last one this kernel knows
    if (result < 0) return result;
  }
  if (const Word result = keep_capabilities(1U << CAP_KILL); result < 0) return result;
  if (const Word result = sys(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); result < 0) {
    return result;
  }
  return sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
}

}  // namespace sbx::child
