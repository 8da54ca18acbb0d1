// Steps of pid 1 that mount into the root: sized tmpfs, /dev, /proc and its masks. In walking
// order.
#include <asm-generic/errno.h>
#include <linux/mount.h>

#include "runtime/child/context.h"
#include "runtime/child/kernel.h"

namespace sbx::child {
namespace {

// Attaches a detached mount at a real directory (or file) beneath the root and closes it.
Word attach_beneath(Context& context, int mount, const char* path, int flags) {
  const int target = static_cast<int>(open_beneath(context.root, path, kOpenPath | flags, 0));
  const Word result = target < 0 ? target : attach_mount(mount, target);
  if (target >= 0) close_fd(target);
  return result;
}

Word mount_one_tmpfs(Context& context, const plan::FlatTmpfs& tmpfs) {
  int mount = static_cast<int>(tmpfs.passed);
  if (tmpfs.passed == 0) {
    const char* uid = tmpfs.uid.size != 0 ? context.text(tmpfs.uid) : nullptr;
    mount = static_cast<int>(make_tmpfs(context.text(tmpfs.size), context.text(tmpfs.inodes),
                                        context.text(tmpfs.mode), uid,
                                        tmpfs.noexec != 0 ? MOUNT_ATTR_NOEXEC : 0U));
    if (mount < 0) return mount;
  }
  const Word result = attach_beneath(context, mount, context.text(tmpfs.target), kOpenDirectory);
  close_fd(mount);
  return result;
}

Word add_device(Context& context, int dev, const plan::FlatBind& device) {
  const char* name = context.text(device.target);
  const int made =
      static_cast<int>(open_beneath(dev, name, kOpenCreate | kOpenExclusive | kOpenReadOnly, 0666));
  if (made < 0) return made;
  close_fd(made);
  const int node = static_cast<int>(clone_mount(kAtFdcwd, context.text(device.source), false));
  if (node < 0) return node;
  Word result =
      set_mount_attributes(node, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, false);
  if (result == 0) {
    const int target = static_cast<int>(open_beneath(dev, name, kOpenPath, 0));
    result = target < 0 ? target : attach_mount(node, target);
    if (target >= 0) close_fd(target);
  }
  close_fd(node);
  return result;
}

Word add_device_links(int dev) {
  constexpr struct {
    const char* target;
    const char* name;
  } kLinks[] = {{"/proc/self/fd", "fd"},
                {"/proc/self/fd/0", "stdin"},
                {"/proc/self/fd/1", "stdout"},
                {"/proc/self/fd/2", "stderr"}};
  for (const auto& link : kLinks) {
    if (const Word result = sys(__NR_symlinkat, link.target, dev, link.name); result < 0) {
      return result;
    }
  }
  return sys(__NR_mkdirat, dev, "shm", 01777);
}

// What makes a mask returns 1, or 0 when this kernel does not have the path, or an error.

// An O_PATH descriptor; 0 is none, since that number is the payload's stdin.
Word open_masked(const char* path) {
  const Word target = sys(__NR_openat, kAtFdcwd, path, kOpenPath | kOpenNofollow | kOpenCloexec, 0);
  return target == -ENOENT ? 0 : target;
}

// Puts the detached mount `mask` (closed here) over `target` (closed here).
Word cover(Word target, Word mask) {
  const Word result =
      mask < 0 ? mask : attach_mount(static_cast<int>(mask), static_cast<int>(target));
  if (mask >= 0) close_fd(static_cast<int>(mask));
  close_fd(static_cast<int>(target));
  return result < 0 ? result : 1;
}

Word mask_with_file(const char* path, const char* source) {
  const Word target = open_masked(path);
  if (target <= 0) return target;
  Word mask = clone_mount(kAtFdcwd, source, false);
  if (mask >= 0) {
    // Read-only: where payload and init share their uid, only this keeps the mask's file as it is.
    const Word set = set_mount_attributes(static_cast<int>(mask), MOUNT_ATTR_RDONLY, false);
    if (set < 0) {
      close_fd(static_cast<int>(mask));
      mask = set;
    }
  }
  return cover(target, mask);
}

Word mask_with_directory(const char* path) {
  const Word target = open_masked(path);
  if (target <= 0) return target;
  return cover(target,
               make_tmpfs("4k", "2", "0555", nullptr, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC));
}

// The mask at `model` once more, with its attributes. One call instead of six, none of which makes
// a mount namespace for a detached mount. Both paths are in a procfs of our own, without links.
Word mask_like(const char* path, const char* model) {
  const Word result = sys(__NR_mount, model, path, nullptr, kMountBind, nullptr);
  return result == -ENOENT ? 0 : result;  // the model is there, so it is `path` that is not
}

// A file with other content: written to /dev, cloned onto the path, its name taken away.
Word mask_with_content(Context& context, const plan::FlatMask& mask) {
  constexpr const char* kStaging = "/dev/.mask";
  const int file = static_cast<int>(
      sys(__NR_openat, kAtFdcwd, kStaging,
          kOpenCreate | kOpenExclusive | kOpenWriteOnly | kOpenNofollow | kOpenCloexec, 0444));
  if (file < 0) return file;
  Word result = write_checked(file, context.text(mask.content), mask.content.size);
  close_fd(file);
  if (result == 0) result = mask_with_file(context.text(mask.path), kStaging);
  const Word gone = sys(__NR_unlinkat, kAtFdcwd, kStaging, 0);
  return result < 0 ? result : gone;
}

// The first mask of a kind is made with all care, the others are made from it.
struct MaskModels {
  const char* file = nullptr;
  const char* directory = nullptr;
};

Word mask_one(Context& context, const plan::FlatMask& mask, MaskModels& models) {
  if (mask.kind == plan::MaskKind::kContent) return mask_with_content(context, mask);
  const char* path = context.text(mask.path);
  const bool is_file = mask.kind == plan::MaskKind::kFile;
  const char*& model = is_file ? models.file : models.directory;
  if (model != nullptr) return mask_like(path, model);
  const Word made = is_file ? mask_with_file(path, "/dev/null") : mask_with_directory(path);
  if (made > 0) model = path;
  return made;
}

}  // namespace

Word mount_tmpfs(Context& context) {
  for (std::uint32_t i = 0; i < context.plan->tmpfs_count; ++i) {
    const Word result = mount_one_tmpfs(context, context.plan->tmpfs[i]);
    if (result < 0) return result;
  }
  return 0;
}

// While the host's nodes still have paths. Device nodes cannot be made in a user namespace; these
// are binds of the host's, read-only: a device is written to all the same, but its times and mode
// stay. They are on a tmpfs that becomes read-only with the inputs, once the masks are made.
// /dev/shm is a mount of its own.
Word make_devices(Context& context) {
  const int dev = static_cast<int>(make_tmpfs("64k", "32", "0755", nullptr, MOUNT_ATTR_NOEXEC));
  if (dev < 0) return dev;
  Word result = attach_beneath(context, dev, "dev", kOpenDirectory);
  for (std::uint32_t i = 0; result == 0 && i < context.plan->device_count; ++i) {
    result = add_device(context, dev, context.plan->devices[i]);
  }
  if (result == 0) result = add_device_links(dev);
  close_fd(dev);
  if (result < 0) return result;
  const plan::FlatTmpfs& shm = context.plan->shm;
  return shm.target.size != 0 ? mount_one_tmpfs(context, shm) : 0;
}

// The run's own proc: shows this pid namespace alone, and of it only the reader's own processes.
Word mount_proc(Context& context) {
  const int filesystem = static_cast<int>(sys(__NR_fsopen, "proc", FSOPEN_CLOEXEC));
  if (filesystem < 0) return filesystem;
  Word result = sys(__NR_fsconfig, filesystem, FSCONFIG_SET_STRING, "hidepid", "invisible", 0);
  if (result == 0) {
    result = sys(__NR_fsconfig, filesystem, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0);
  }
  if (result == 0) {
    result = sys(__NR_fsmount, filesystem, FSMOUNT_CLOEXEC,
                 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  }
  close_fd(filesystem);
  if (result < 0) return result;
  const int mount = static_cast<int>(result);
  result = attach_beneath(context, mount, "proc", kOpenDirectory);
  close_fd(mount);
  return result;
}

// After the pivot. The writable view goes to the payload's own steps (id maps) and to init's facts;
// it is a clone outside any path, closed before exec.
Word make_proc_read_only(Context& context) {
  const int view = static_cast<int>(clone_mount(kAtFdcwd, "/proc", false));
  if (view < 0) return view;
  context.proc = view;
  const int mount =
      static_cast<int>(sys(__NR_openat, kAtFdcwd, "/proc", kOpenPath | kOpenCloexec, 0));
  if (mount < 0) return mount;
  const Word result = set_mount_attributes(mount, MOUNT_ATTR_RDONLY, false);
  close_fd(mount);
  return result;
}

// Host-wide files of /proc that tell about the machine or its users.
Word mask_proc(Context& context) {
  MaskModels models;
  for (std::uint32_t i = 0; i < context.plan->mask_count; ++i) {
    const Word result = mask_one(context, context.plan->masks[i], models);
    if (result < 0) return result;
  }
  return 0;
}

}  // namespace sbx::child
