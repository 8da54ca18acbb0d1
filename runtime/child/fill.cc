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
// Two paths of an entry: its own, and what a link names.
char path_buffer[plan::kMaxFillPath];
char other_buffer[plan::kMaxFillPath];

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

Word read_text(char (&to)[plan::kMaxFillPath], std::uint64_t size) {
  if (size >= sizeof to) return -EPROTO;
  to[size] = '\0';
  return read_exactly(to, static_cast<std::size_t>(size));
}

Word copy_content(int file, std::uint64_t offset, std::uint64_t size) {
  while (size > 0) {
    const std::size_t part = size < kChunk ? static_cast<std::size_t>(size) : kChunk;
    if (const Word result = read_exactly(chunk, part); result < 0) return result;
    for (std::size_t done = 0; done < part;) {
      const Word put = sys(__NR_pwrite64, file, chunk + done, part - done, offset);
      if (put == -EINTR) continue;
      if (put < 0) return put;
      done += static_cast<std::size_t>(put);
      offset += static_cast<std::uint64_t>(put);
    }
    size -= part;
  }
  return 0;
}

Word copy_extents(int file, std::uint64_t length) {
  if (const Word result = sys(__NR_ftruncate, file, length); result < 0) return result;
  for (;;) {
    plan::FillExtent extent;
    if (const Word result = read_exactly(&extent, sizeof extent); result < 0) return result;
    if (extent.size == 0) return 0;
    if (const Word result = copy_content(file, extent.offset, extent.size); result < 0) {
      return result;
    }
  }
}

// Owner, then mode (past the umask), then the time, which the writing has set.
Word finish(int fd, const Context& context, const plan::FillHeader& header) {
  const Word id = context.plan->payload_id;
  if (const Word result = sys(__NR_fchown, fd, id, id); result < 0) return result;
  if (const Word result = sys(__NR_fchmod, fd, header.mode); result < 0) return result;
  if (header.mtime_nanoseconds == plan::kTimeOfFilling) return 0;
  const KernelTimespec times[2] = {{0, plan::kTimeOfFilling},
                                   {header.mtime_seconds, header.mtime_nanoseconds}};
  return sys(__NR_utimensat, fd, nullptr, times, 0);
}

// Where an entry goes: the directory that holds it, and its name there.
struct Place {
  int parent = -1;
  const char* name = nullptr;
};

// Cuts `path` at its last '/'. No link on the way is followed.
Word find_place(int root, char* path, Place& place) {
  char* slash = nullptr;
  for (char* at = path; *at != '\0'; ++at) {
    if (*at == '/') slash = at;
  }
  if (slash != nullptr) *slash = '\0';
  const Word parent =
      open_beneath(root, slash != nullptr ? path : ".", kOpenPath | kOpenDirectory, 0);
  if (parent < 0) return parent;
  place = {static_cast<int>(parent), slash != nullptr ? slash + 1 : path};
  return 0;
}

Word make_directory(Context& context, const plan::FillHeader& header, const Place& place) {
  if (const Word made = sys(__NR_mkdirat, place.parent, place.name, 0700); made < 0) return made;
  const int fd =
      static_cast<int>(open_beneath(place.parent, place.name, kOpenReadOnly | kOpenDirectory, 0));
  if (fd < 0) return fd;
  const Word result = finish(fd, context, header);
  close_fd(fd);
  return result;
}

Word make_file(Context& context, const plan::FillHeader& header, const Place& place) {
  const int file = static_cast<int>(
      open_beneath(place.parent, place.name, kOpenCreate | kOpenExclusive | kOpenWriteOnly, 0600));
  if (file < 0) return file;
  Word result = header.kind == plan::FillKind::kFile ? copy_content(file, 0, header.size)
                                                     : copy_extents(file, header.size);
  if (result == 0) result = finish(file, context, header);
  close_fd(file);
  return result;
}

Word make_symlink(Context& context, const plan::FillHeader& header, const Place& place) {
  if (const Word result = read_text(other_buffer, header.size); result < 0) return result;
  const Word made = sys(__NR_symlinkat, other_buffer, place.parent, place.name);
  if (made < 0) return made;
  const Word id = context.plan->payload_id;
  return sys(__NR_fchownat, place.parent, place.name, id, id, kAtSymlinkNofollow);
}

Word make_hard_link(const plan::FillHeader& header, int root, const Place& place) {
  if (const Word result = read_text(other_buffer, header.size); result < 0) return result;
  Place there;
  if (const Word result = find_place(root, other_buffer, there); result < 0) return result;
  const Word result = sys(__NR_linkat, there.parent, there.name, place.parent, place.name, 0);
  close_fd(there.parent);
  return result;
}

Word fill_one(Context& context, const plan::FillHeader& header, int root) {
  Place place;
  if (const Word result = find_place(root, path_buffer, place); result < 0) return result;
  Word result = -EPROTO;
  switch (header.kind) {
    case plan::FillKind::kEnd:
      break;
    case plan::FillKind::kDirectory:
      result = make_directory(context, header, place);
      break;
    case plan::FillKind::kFile:
    case plan::FillKind::kSparseFile:
      result = make_file(context, header, place);
      break;
    case plan::FillKind::kSymlink:
      result = make_symlink(context, header, place);
      break;
    case plan::FillKind::kHardLink:
      result = make_hard_link(header, root, place);
      break;
  }
  close_fd(place.parent);
  return result;
}

// The whole stream, in the filler. Roots are opened per entry: entries are few or big, or cost more
// than that.
Word fill_all(Context& context) {
  for (;;) {
    plan::FillHeader header;
    if (const Word result = read_exactly(&header, sizeof header); result < 0) return result;
    if (header.kind == plan::FillKind::kEnd) return 0;
    if (header.tmpfs >= context.plan->tmpfs_count) return -EPROTO;
    if (const Word result = read_text(path_buffer, header.path_size); result < 0) return result;
    const char* target = context.text(context.plan->tmpfs[header.tmpfs].target);
    const int root =
        static_cast<int>(sys(__NR_openat, kAtFdcwd, target, kOpenPath | kOpenCloexec, 0));
    if (root < 0) return root;
    const Word result = fill_one(context, header, root);
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
