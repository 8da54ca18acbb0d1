// Filling /code, /input and /work from the supervisor's stream. Stage: child, pid 1 and a
// short-lived child of it.
//
// The bytes must count in the payload's memory limit, and tmpfs pages are charged to the group of
// the writer's memory owner, so the writer is a process with an address space of its own in the
// payload's leaf: the one real fork of a run, and only when there is something to fill.
#include <asm-generic/errno.h>
#include <linux/mount.h>
#include <linux/sched.h>

#include "runtime/child/context.h"
#include "runtime/child/kernel.h"

namespace sbx::child {
namespace {

constexpr int kWaitAll = 0x40000000;  // __WALL
constexpr std::size_t kChunk = 64 * 1024;
alignas(64) char chunk[kChunk];

// Reads exactly `size` bytes; end of file before that is -EPIPE (the supervisor died or gave up).
Word read_exactly(void* to, std::size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const Word got = sys(__NR_read, plan::kSlotFill, at, size);
    if (got == -EINTR) continue;
    if (got < 0) return got;
    if (got == 0) return -EPIPE;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return 0;
}

Word copy_content(int file, std::uint64_t size) {
  while (size > 0) {
    const std::size_t part = size < kChunk ? static_cast<std::size_t>(size) : kChunk;
    if (const Word result = read_exactly(chunk, part); result < 0) return result;
    for (std::size_t done = 0; done < part;) {
      const Word put = sys(__NR_write, file, chunk + done, part - done);
      if (put == -EINTR) continue;
      if (put < 0) return put;
      done += static_cast<std::size_t>(put);
    }
    size -= part;
  }
  return 0;
}

Word own(int fd, const Context& context) {
  const Word id = context.plan->payload_id;
  return sys(__NR_fchown, fd, id, id);
}

Word fill_one(Context& context, const plan::FillHeader& header, const char* path, int root) {
  if (header.kind == plan::FillKind::kDirectory) {
    if (const Word made = sys(__NR_mkdirat, root, path, header.mode); made < 0) return made;
    const int fd = static_cast<int>(open_beneath(root, path, kOpenReadOnly | kOpenDirectory, 0));
    if (fd < 0) return fd;
    const Word result = own(fd, context);
    close_fd(fd);
    return result;
  }
  const int file = static_cast<int>(
      open_beneath(root, path, kOpenCreate | kOpenExclusive | kOpenWriteOnly, header.mode));
  if (file < 0) return file;
  Word result = copy_content(file, header.size);
  if (result == 0) result = own(file, context);
  close_fd(file);
  return result;
}

// The whole stream, in the filler. Roots are opened per entry: entries are few or big.
Word fill_all(Context& context) {
  static char path[plan::kMaxFillPath];
  for (;;) {
    plan::FillHeader header;
    if (const Word result = read_exactly(&header, sizeof header); result < 0) return result;
    if (header.kind == plan::FillKind::kEnd) return 0;
    if (header.path_size >= plan::kMaxFillPath || header.tmpfs >= context.plan->tmpfs_count) {
      return -EPROTO;
    }
    if (const Word result = read_exactly(path, header.path_size); result < 0) return result;
    path[header.path_size] = '\0';
    const char* target = context.text(context.plan->tmpfs[header.tmpfs].target);
    const int root =
        static_cast<int>(sys(__NR_openat, kAtFdcwd, target, kOpenPath | kOpenCloexec, 0));
    if (root < 0) return root;
    const Word result = fill_one(context, header, path, root);
    close_fd(root);
    if (result < 0) return result;
  }
}

[[noreturn]] void run_filler(Context& context) {
  Word result = join_payload_cgroups(context);
  if (result == 0) result = fill_all(context);
  exit_now(static_cast<int>(-result));
}

}  // namespace

// After the pivot, so that targets are paths of the new root (our working directory is its "/").
Word fill(Context& context) {
  if (context.plan->has_fill == 0) return 0;
  CloneArgs args;
  args.exit_signal = kSigchld;
  if (context.plan->has_payload_leaf != 0) {
    args.flags = CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(plan::kSlotPayloadLeaf);
  }
  const Word pid = sys(__NR_clone3, &args, sizeof args);
  if (pid < 0) return pid;
  if (pid == 0) run_filler(context);
  close_fd(plan::kSlotFill);
  int status = 0;
  Word waited;
  do {
    waited = sys(__NR_wait4, pid, &status, kWaitAll, nullptr);
  } while (waited == -EINTR);
  if (waited < 0) return waited;
  if (status == 0) return 0;
  // Killed: only the memory limit does that here. Else the exit code is the errno.
  return (status & 0x7f) != 0 ? -ENOMEM : -((status >> 8) & 0xff);
}

namespace {

Word make_read_only(const char* path) {
  const int mount = static_cast<int>(sys(__NR_openat, kAtFdcwd, path, kOpenPath | kOpenCloexec, 0));
  if (mount < 0) return mount;
  const Word result = set_mount_attributes(mount, MOUNT_ATTR_RDONLY, false);
  close_fd(mount);
  return result;
}

}  // namespace

// After the filling, and after the masks, whose contents are made in /dev.
Word make_inputs_read_only(Context& context) {
  if (const Word result = make_read_only("/dev"); result < 0) return result;
  for (std::uint32_t i = 0; i < context.plan->tmpfs_count; ++i) {
    const plan::FlatTmpfs& tmpfs = context.plan->tmpfs[i];
    if (tmpfs.read_only == 0) continue;
    if (const Word result = make_read_only(context.text(tmpfs.target)); result < 0) return result;
  }
  return 0;
}

}  // namespace sbx::child
