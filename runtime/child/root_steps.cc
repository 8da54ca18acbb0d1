// Steps of pid 1 that build the root: what the payload will see as "/". In walking order.
//
// SECURITY: every path below the root is resolved with openat2 beneath the root's descriptor,
// without following links: an image whose dev or proc is a symlink is refused, never followed
// (CVE-2025-31133).
#include <asm-generic/errno.h>
#include <linux/mount.h>

#include "runtime/child/context.h"
#include "runtime/child/kernel.h"

namespace sbx::child {
namespace {

constexpr std::uint64_t kRootAttributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

Word empty_file_beneath(int directory, const char* path, std::uint32_t mode) {
  return open_beneath(directory, path, kOpenCreate | kOpenExclusive | kOpenWriteOnly, mode);
}

// An image: its tree, cloned, read-only, mounted onto its own path so that pivot_root accepts it.
Word attach_image(Context& context) {
  const char* path = context.text(context.plan->rootfs);
  const int tree = static_cast<int>(clone_mount(kAtFdcwd, path, true));
  if (tree < 0) return tree;
  Word result = set_mount_attributes(tree, kRootAttributes, true);
  if (result == 0) {
    result = sys(__NR_move_mount, tree, "", kAtFdcwd, path, MOVE_MOUNT_F_EMPTY_PATH);
  }
  context.root = tree;  // the same descriptor now names the attached mount's root
  return result;
}

// rootfs = host: an empty tmpfs that gets directories, links, small files and binds.
Word attach_empty_root(Context& context) {
  const int tree = static_cast<int>(make_tmpfs("256k", "256", "0755", nullptr, 0));
  if (tree < 0) return tree;
  context.root = tree;
  // /tmp exists on every host that follows the FHS; our mount namespace alone sees this.
  return sys(__NR_move_mount, tree, "", kAtFdcwd, "/tmp", MOVE_MOUNT_F_EMPTY_PATH);
}

Word bind_one(Context& context, const plan::FlatBind& bind) {
  const int tree =
      static_cast<int>(clone_mount(kAtFdcwd, context.text(bind.source), bind.directory != 0));
  if (tree < 0) return tree == -ENOENT && bind.optional != 0 ? 0 : tree;
  Word result = set_mount_attributes(tree, kRootAttributes, bind.directory != 0);
  const char* path = context.text(bind.target);
  if (result == 0) {
    if (bind.directory != 0) {
      result = sys(__NR_mkdirat, context.root, path, 0755);
      if (result == -EEXIST) result = 0;
    } else if (const int made = static_cast<int>(empty_file_beneath(context.root, path, 0444));
               made >= 0) {
      close_fd(made);
    } else {
      result = made == -EEXIST ? 0 : made;
    }
  }
  if (result == 0) {
    const int target = static_cast<int>(open_beneath(context.root, path, kOpenPath, 0));
    result = target < 0 ? target : attach_mount(tree, target);
    if (target >= 0) close_fd(target);
  }
  close_fd(tree);
  return result;
}

Word write_new_file(Context& context, const plan::FlatFile& file) {
  const int fd = static_cast<int>(empty_file_beneath(context.root, context.text(file.path), 0444));
  if (fd < 0) return fd;
  const Word result =
      file.content.size == 0 ? 0 : write_checked(fd, context.text(file.content), file.content.size);
  close_fd(fd);
  return result;
}

}  // namespace

// Before any mount of ours: nothing may propagate to the host, whatever its propagation is.
Word make_mounts_private(Context&) {
  return sys(__NR_mount, nullptr, "/", nullptr, kMountRecursive | kMountPrivate, nullptr);
}

Word attach_rootfs(Context& context) {
  return context.plan->rootfs.size != 0 ? attach_image(context) : attach_empty_root(context);
}

// Only for rootfs = host; an image brings all of this. The root tmpfs stays writable until the end.
Word bind_host_files(Context& context) {
  const plan::FlatPlan& plan = *context.plan;
  if (plan.rootfs.size != 0) return 0;
  for (std::uint32_t i = 0; i < plan.directory_count; ++i) {
    const Word result = sys(__NR_mkdirat, context.root, context.text(plan.directories[i]), 0755);
    if (result < 0) return result;
  }
  for (std::uint32_t i = 0; i < plan.symlink_count; ++i) {
    const Word result = sys(__NR_symlinkat, context.text(plan.symlinks[i].target), context.root,
                            context.text(plan.symlinks[i].link));
    if (result < 0) return result;
  }
  for (std::uint32_t i = 0; i < plan.file_count; ++i) {
    if (const Word result = write_new_file(context, plan.files[i]); result < 0) return result;
  }
  for (std::uint32_t i = 0; i < plan.bind_count; ++i) {
    if (const Word result = bind_one(context, plan.binds[i]); result < 0) return result;
  }
  return set_mount_attributes(context.root, kRootAttributes, false);
}

// After everything that needs a host path; proc is already mounted, because a user may mount it
// only while a fully visible one is left in the mount namespace (else fsmount(2) gives EPERM).
Word pivot(Context& context) {
  if (const Word result = sys(__NR_fchdir, context.root); result < 0) return result;
  if (const Word result = sys(__NR_pivot_root, ".", "."); result < 0) return result;
  // The old root lies over the new one now; detaching it takes every host path away.
  if (const Word result = sys(__NR_umount2, ".", kMountDetach); result < 0) return result;
  if (const Word result = sys(__NR_chdir, "/"); result < 0) return result;
  close_fd(context.root);
  context.root = -1;
  return 0;
}

}  // namespace sbx::child
