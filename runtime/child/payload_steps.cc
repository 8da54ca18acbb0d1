// Steps of the payload between its clone and its exec. Every one says why it stands where it does;
// docs/child-setup.md has the list with the kernel's rules.
//
// SECURITY: runs in pid 1's memory (CLONE_VM) while pid 1 is stopped. Nothing here may write to
// shared memory but the words of Context that are meant for it, and dumpable belongs to that
// memory: init clears it again afterwards.
#include <asm-generic/errno.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>

#include "runtime/child/context.h"
#include "runtime/child/kernel.h"

namespace sbx::child {

constexpr std::uint64_t kCgroupMagic = 0x27e0eb;
constexpr std::uint64_t kProcMagic = 0x9fa0;
constexpr Word kNestedId =
    65534;  // the payload's uid in its own namespace, and in no other of ours

namespace {

// The magic is checked so that "0" goes nowhere but to cgroupfs (CVE-2025-52881).
Word join_cgroups(std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t i = first; i < end; ++i) {
    const int fd = plan::kSlotJoin + static_cast<int>(i);
    if (!on_filesystem(fd, kCgroupMagic)) return -EOPNOTSUPP;
    if (const Word result = write_checked(fd, "0", 1); result < 0) return result;
  }
  return 0;
}

}  // namespace

// Init's first step: what it spends on the payload's behalf (set-up, answering denied calls) counts
// in the run's CPU limit. On v2 its leaf is below the group that has the limit.
Word join_cpu_cgroups(Context& context) {
  return join_cgroups(0, context.plan->init_join_count);
}

// The payload's first step, while the uid is still the one that opened the files: cgroup v1 checks
// the opener. On v2 the clone has put us into the leaf already.
Word join_payload_cgroups(Context& context) {
  return join_cgroups(context.plan->init_join_count, context.plan->join_count);
}

// SECURITY: as above, for /proc.
Word write_proc(const Context& context, const char* path, const char* bytes, std::size_t size) {
  const int fd =
      static_cast<int>(sys(__NR_openat, context.proc, path, kOpenWriteOnly | kOpenCloexec, 0));
  if (fd < 0) return fd;
  const Word result =
      on_filesystem(fd, kProcMagic) ? write_checked(fd, bytes, size) : Word{-EOPNOTSUPP};
  close_fd(fd);
  return result;
}

namespace {

// Only now: before the leaf was joined, /proc/self/cgroup would show it as "/../payload".
Word new_cgroup_namespace(Context&) {
  return sys(__NR_unshare, CLONE_NEWCGROUP);
}

// While still uid 0 of the outer namespace. A user with one id may not (setgroups is denied there).
Word clear_groups(Context& context) {
  if (context.plan->clear_groups == 0) return 0;
  return sys(__NR_setgroups, 0, nullptr);
}

// To the run's own id, keeping capabilities over the outer namespace for the next steps
// (NO_SETUID_FIXUP). Dumpable, or /proc/self/uid_map would belong to root and not open.
Word take_identity(Context& context) {
  const Word id = context.plan->payload_id;
  if (id == 0) return 0;
  Word result = sys(__NR_prctl, PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
  if (result == 0) result = sys(__NR_setresgid, id, id, id);
  if (result == 0) result = sys(__NR_setresuid, id, id, id);
  if (result == 0) result = sys(__NR_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
  return result;
}

// With its own uid, whose quota of keys it then is. Inherited from the caller, a session keyring
// would be one for all runs and for whoever called: no namespace tells keyrings apart. A second
// layer under seccomp. Where a filter that stands before ours refuses keys, it refuses them to the
// payload too.
Word new_session_keyring(Context&) {
  const Word result = sys(__NR_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  return result == -ENOSYS || result == -EPERM || result > 0 ? 0 : result;
}

// The nested namespace owns nothing: no mount, no hostname, no net namespace is subject to it.
Word new_user_namespace(Context&) {
  return sys(__NR_unshare, CLONE_NEWUSER);
}

// By itself: mapping one's own single id needs no privilege and no other process, so no pid can be
// mixed up with another.
Word write_id_maps(Context& context) {
  Word result = write_proc(context, "self/setgroups", "deny", 4);
  const Span uid = context.plan->uid_map;
  if (result == 0) result = write_proc(context, "self/uid_map", context.text(uid), uid.size);
  const Span gid = context.plan->gid_map;
  if (result == 0) result = write_proc(context, "self/gid_map", context.text(gid), gid.size);
  return result;
}

// While root in the nested namespace: the sysctl is per user namespace, that of its opener. A
// second layer under seccomp's unshare and clone rules. Only there: where the nested one is allowed
// to be missing, this would forbid the spawner's every later run its own.
Word forbid_user_namespaces(Context& context) {
  if (sys(__NR_getuid) != kNestedId) return -EPERM;
  return write_proc(context, "sys/user/max_user_namespaces", "0", 1);
}

// What the kernel counts for a user it also counts for those who made his namespaces, up to whoever
// started us: one run could leave the host's services without inotify. Sysctls as above.
Word limit_user_counts(Context& context) {
  if (sys(__NR_getuid) != kNestedId) return -EPERM;
  Word result = write_proc(context, "sys/user/max_inotify_instances", "4", 1);
  if (result == 0) result = write_proc(context, "sys/user/max_inotify_watches", "4096", 4);
  return result == -ENOENT ? 0 : result;  // a kernel without inotify
}

// Again: a change of uid clears the death signal.
Word payload_dies_with_init(Context&) {
  return sys(__NR_prctl, PR_SET_PDEATHSIG, kSigkill, 0, 0, 0);
}

// While every directory is still within reach; the payload's own id must be able to enter it.
Word enter_work_directory(Context& context) {
  return sys(__NR_chdir, context.text(context.plan->work_directory));
}

Word set_affinity(Context& context) {
  return sys(__NR_sched_setaffinity, 0, sizeof context.plan->cpu_mask, context.plan->cpu_mask);
}

// Before the capabilities go: dropping from the bounding set needs CAP_SETPCAP.
Word drop_bounding_set(Context&) {
  for (int capability = 0; capability <= kLastCapability; ++capability) {
    const Word result = sys(__NR_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0);
    if (result == -EINVAL) return 0;  // past the last one this kernel knows
    if (result < 0) return result;
  }
  return 0;
}

Word drop_own_capabilities(Context&) {
  return keep_capabilities(0);
}

Word set_rlimits(Context& context) {
  for (std::uint32_t i = 0; i < context.plan->rlimit_count; ++i) {
    const plan::FlatRlimit& limit = context.plan->rlimits[i];
    const std::uint64_t values[2] = {limit.soft, limit.hard};
    const Word result = sys(__NR_prlimit64, 0, limit.resource, values, nullptr);
    if (result < 0) return result;
  }
  return 0;
}

// Before Landlock and seccomp, which ask for it; set-user-id programs give nothing from here on.
Word set_no_new_privs(Context&) {
  return sys(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

Word empty_signal_mask(Context&) {
  const std::uint64_t none = 0;
  return sys(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &none, nullptr, sizeof none);
}

// Last but two: the filter would stop the steps above. The listener's number goes to init through
// the shared memory and the shared descriptor table. WAIT_KILLABLE_RECV (5.19): a caller whose call
// init has taken can only be killed, so an answer always finds its call.
Word install_seccomp(Context& context) {
  struct {
    unsigned short length;
    const void* filter;
  } program{static_cast<unsigned short>(context.plan->bpf.size / sizeof(sock_filter)),
            context.text(context.plan->bpf)};
  const Word fd =
      sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
          SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
  if (fd < 0) return fd;
  context.listener = static_cast<int>(fd);
  return 0;
}

// Everything but 0–2, in a table of our own from here on: init keeps its descriptors.
Word close_descriptors(Context&) {
  return sys(__NR_close_range, 3, ~0U, CLOSE_RANGE_UNSHARE);
}

Word execute(Context& context) {
  const auto* argv = reinterpret_cast<const Word*>(context.text(context.plan->argv));
  const auto* envp = reinterpret_cast<const Word*>(context.text(context.plan->envp));
  Word result = -ENOENT;
  for (std::uint32_t i = 0; i < context.plan->exec_path_count; ++i) {
    const Word now = sys(__NR_execve, context.text(context.plan->exec_paths[i]), argv, envp);
    // As execvp does: what is not here may be further on; "no permission" is remembered.
    if (now != -ENOENT && now != -ENOTDIR && now != -EACCES) return now;
    if (now == -EACCES || result == -ENOENT) result = now;
  }
  return result;
}

constexpr StepEntry kSteps[] = {
    {Step::kJoinCgroup, join_payload_cgroups},
    {Step::kCgroupNamespace, new_cgroup_namespace},
    {Step::kGroups, clear_groups},
    {Step::kIdentity, take_identity},
    {Step::kKeyring, new_session_keyring},
    {Step::kUserNamespace, new_user_namespace},
    {Step::kIdMaps, write_id_maps},
    {Step::kNoMoreUserNamespaces, forbid_user_namespaces},
    {Step::kUserLimits, limit_user_counts},
    {Step::kPayloadParentDeath, payload_dies_with_init},
    {Step::kWorkDirectory, enter_work_directory},
    {Step::kAffinity, set_affinity},
    {Step::kBoundingSet, drop_bounding_set},
    {Step::kCapabilities, drop_own_capabilities},
    {Step::kRlimits, set_rlimits},
    {Step::kNoNewPrivs, set_no_new_privs},
    {Step::kLandlock, restrict_writes},
    {Step::kSignalMask, empty_signal_mask},
};

// Behind the filter a report can still be written (write(2) is allowed) until the descriptors
// close.
constexpr StepEntry kFilterStep[] = {{Step::kSeccomp, install_seccomp}};

// With the descriptors gone, what fails is told through init's memory.
constexpr StepEntry kLateSteps[] = {
    {Step::kCloseDescriptors, close_descriptors},
    {Step::kExec, execute},
};

}  // namespace

int run_payload(void* shared) {
  Context& context = *static_cast<Context*>(shared);
  if (!walk(context, kSteps, sizeof kSteps / sizeof kSteps[0])) exit_now(127);
  plan::Record record;
  record.kind = plan::RecordKind::kAboutToExec;
  report(record);
  if (!walk(context, kFilterStep, 1)) exit_now(127);
  for (const StepEntry& entry : kLateSteps) {
    const Word result = chosen_step(context, entry)(context);
    if (result >= 0) continue;
    context.late_step = entry.step;
    context.late_error = static_cast<int>(-result);
    break;
  }
  exit_now(127);
}

}  // namespace sbx::child
