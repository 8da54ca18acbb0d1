// Kernel structures and constants that libc headers define in ways sbx-init cannot use, and the few
// compound calls that several steps share. Stage: child.
#pragma once

#include <linux/capability.h>

#include "runtime/child/context.h"
#include "runtime/child/syscall.h"

namespace sbx::child {

// The kernel's open(2) flags, by architecture.
inline constexpr int kOpenReadOnly = 0;
inline constexpr int kOpenWriteOnly = 1;
inline constexpr int kOpenReadWrite = 2;
inline constexpr int kOpenCreate = 0100;
inline constexpr int kOpenExclusive = 0200;
inline constexpr int kOpenNonblock = 04000;
inline constexpr int kOpenCloexec = 02000000;
inline constexpr int kOpenPath = 010000000;
#if defined(__aarch64__)
inline constexpr int kOpenDirectory = 040000;
inline constexpr int kOpenNofollow = 0100000;
#else
inline constexpr int kOpenDirectory = 0200000;
inline constexpr int kOpenNofollow = 0400000;
#endif
inline constexpr int kAtFdcwd = -100;
inline constexpr int kAtSymlinkNofollow = 0x100;
inline constexpr int kAtEmptyPath = 0x1000;
inline constexpr int kAtRecursive = 0x8000;

inline constexpr unsigned kMountBind = 1U << 12;
inline constexpr unsigned kMountRecursive = 1U << 14;
inline constexpr unsigned kMountPrivate = 1U << 18;
inline constexpr int kMountDetach = 2;

inline constexpr int kSigkill = 9;
inline constexpr int kSigchld = 17;
inline constexpr short kPollIn = 1;
inline constexpr short kPollHup = 0x10;
inline constexpr int kLastCapability = 63;

struct PollFd {
  int fd;
  short events;
  short revents;
};
struct KernelTimespec {
  std::int64_t seconds;
  std::int64_t nanoseconds;
};

inline constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

// CLOCK_MONOTONIC in nanoseconds; in the time namespace of the caller.
std::uint64_t monotonic_now();

// struct clone_args, Linux 5.7 (with cgroup).
struct CloneArgs {
  std::uint64_t flags = 0, pidfd = 0, child_tid = 0, parent_tid = 0, exit_signal = 0, stack = 0,
                stack_size = 0, tls = 0, set_tid = 0, set_tid_size = 0, cgroup = 0;
};

// clone3(2) with CLONE_VM: the child runs `entry` on a stack of its own, never returns, and shares
// everything else. Returns the pid or -errno. Not reentrant (one static stack): pid 1 has one
// payload.
Word clone_on_stack(CloneArgs& args, int (*entry)(void*), void* argument);

// capset(2) to the set `kept` (bit n: capability n, below 32), permitted and effective; nothing
// inheritable, ambient set cleared.
Word keep_capabilities(std::uint32_t kept);

// write(2) of all bytes in one call, else -EIO.
Word write_checked(int fd, const char* bytes, std::size_t size);

// openat2(2) beneath `directory`, following no link at all.
Word open_beneath(int directory, const char* path, int flags, std::uint32_t mode);

// mount_setattr(2): adds MOUNT_ATTR_* flags.
Word set_mount_attributes(int mount, std::uint64_t attributes, bool recursive);

// open_tree(2) clone of `path`; an O_PATH descriptor of a detached mount.
Word clone_mount(int directory, const char* path, bool recursive);

// fsopen(2) … fsmount(2): a detached tmpfs. `uid` null keeps the mounter's; `attributes` are
// MOUNT_ATTR_* beyond NOSUID and NODEV. Sizes are decimal text or with a suffix, as tmpfs(5) reads.
Word make_tmpfs(const char* size, const char* inodes, const char* mode, const char* uid,
                std::uint64_t attributes);

// move_mount(2) of a detached mount onto an O_PATH target.
Word attach_mount(int mount, int target);

// True when fd is on a file system with this magic number (fstatfs(2)).
bool on_filesystem(int fd, std::uint64_t magic);

}  // namespace sbx::child
