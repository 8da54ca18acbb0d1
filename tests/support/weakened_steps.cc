// The testing sbx-init's answer to which function a step is: the listed one, one that fails
// (FlatPlan::inject), or one that leaves out what the step protects (FlatPlan::weaken). With it a
// layer of isolation can be switched off, to see what the others hold without it. Stage: child, in
// its place; the same rules (no libc, no allocation).
#include <asm-generic/errno.h>
#include <linux/mount.h>
#include <linux/prctl.h>

#include "runtime/child/context.h"
#include "runtime/child/kernel.h"

namespace sbx::child {
namespace {

Word fail(Context&) {
  return -ENOTRECOVERABLE;
}

Word leave_out(Context&) {
  return 0;
}

Word attach_beneath_root(Context& context, int mount, const char* path) {
  const int target =
      static_cast<int>(open_beneath(context.root, path, kOpenPath | kOpenDirectory, 0));
  const Word result = target < 0 ? target : attach_mount(mount, target);
  if (target >= 0) close_fd(target);
  return result;
}

// The image writable, with set-user-id programs and devices that work.
Word attach_open_rootfs(Context& context) {
  if (context.plan->rootfs.size == 0) return attach_rootfs(context);
  const char* path = context.text(context.plan->rootfs);
  const int tree = static_cast<int>(clone_mount(kAtFdcwd, path, true));
  if (tree < 0) return tree;
  context.root = tree;
  return sys(__NR_move_mount, tree, "", kAtFdcwd, path, MOVE_MOUNT_F_EMPTY_PATH);
}

// The host's own /dev too, below /dev/host.
Word make_devices_and_the_hosts(Context& context) {
  Word result = make_devices(context);
  if (result == 0) result = sys(__NR_mkdirat, context.root, "dev/host", 0755);
  const int dev = static_cast<int>(clone_mount(kAtFdcwd, "/dev", true));
  if (dev < 0) return dev;
  if (result == 0) result = attach_beneath_root(context, dev, "dev/host");
  close_fd(dev);
  return result;
}

// Everybody's processes are seen.
Word mount_open_proc(Context& context) {
  const int filesystem = static_cast<int>(sys(__NR_fsopen, "proc", FSOPEN_CLOEXEC));
  if (filesystem < 0) return filesystem;
  Word result = sys(__NR_fsconfig, filesystem, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0);
  if (result == 0) result = sys(__NR_fsmount, filesystem, FSMOUNT_CLOEXEC, 0);
  close_fd(filesystem);
  if (result < 0) return result;
  const int mount = static_cast<int>(result);
  result = attach_beneath_root(context, mount, "proc");
  close_fd(mount);
  return result;
}

Word keep_proc_writable(Context& context) {
  context.proc = static_cast<int>(clone_mount(kAtFdcwd, "/proc", false));
  return context.proc < 0 ? context.proc : 0;
}

// The old root stays, and is seen below /code (which a run of a program leaves empty).
Word pivot_keeping_old_root(Context& context) {
  if (const Word result = sys(__NR_fchdir, context.root); result < 0) return result;
  if (const Word result = sys(__NR_pivot_root, ".", "code"); result < 0) return result;
  if (const Word result = sys(__NR_chdir, "/"); result < 0) return result;
  close_fd(context.root);
  context.root = -1;
  return 0;
}

// Ambient, so that they outlive the exec of a program that is not root.
Word keep_all_capabilities(Context&) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (const Word result = sys(__NR_capget, &header, sets); result < 0) return result;
  for (auto& set : sets) set.inheritable = set.permitted;
  if (const Word result = sys(__NR_capset, &header, sets); result < 0) return result;
  for (int capability = 0; capability <= kLastCapability; ++capability) {
    const Word result = sys(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
    if (result == -EINVAL) return 0;  // past the last one this kernel knows
    if (result < 0) return result;
  }
  return 0;
}

// kFill, kIdentity and other machinery cannot be weakened: nothing would run.
constexpr StepEntry kWeakened[] = {
    {Step::kSession, leave_out},
    {Step::kNotDumpable, leave_out},
    {Step::kRootfs, attach_open_rootfs},
    {Step::kDevices, make_devices_and_the_hosts},
    {Step::kProc, mount_open_proc},
    {Step::kPivot, pivot_keeping_old_root},
    {Step::kReadOnlyProc, keep_proc_writable},
    {Step::kMasks, leave_out},
    {Step::kReadOnlyInputs, leave_out},
    {Step::kTimeNamespace, leave_out},
    {Step::kDropInit, leave_out},
    {Step::kCgroupNamespace, leave_out},
    {Step::kKeyring, leave_out},
    {Step::kUserNamespace, leave_out},
    {Step::kIdMaps, leave_out},
    {Step::kNoMoreUserNamespaces, leave_out},
    {Step::kUserLimits, leave_out},
    {Step::kAffinity, leave_out},
    {Step::kBoundingSet, leave_out},
    {Step::kCapabilities, keep_all_capabilities},
    {Step::kRlimits, leave_out},
    {Step::kNoNewPrivs, leave_out},
    {Step::kLandlock, leave_out},
    {Step::kSeccomp, leave_out},
    {Step::kCloseDescriptors, leave_out},
};

}  // namespace

StepFunction chosen_step(const Context& context, const StepEntry& entry) {
  const plan::StepMask bit = plan::step_bit(entry.step);
  if ((context.plan->inject & bit) != 0) return fail;
  if ((context.plan->weaken & bit) == 0) return entry.run;
  for (const StepEntry& weakened : kWeakened) {
    if (weakened.step == entry.step) return weakened.run;
  }
  return fail;  // a test asks for what there is not
}

}  // namespace sbx::child
