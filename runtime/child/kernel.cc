#include "runtime/child/kernel.h"

#include <asm-generic/errno.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/prctl.h>

namespace sbx::child {
namespace {

// The payload walks a few dozen small functions before its exec.
constexpr std::size_t kPayloadStack = 32 * 1024;
alignas(64) char payload_stack[kPayloadStack];

constexpr int kClockMonotonic = 1;

}  // namespace

std::uint64_t monotonic_now() {
  KernelTimespec time{0, 0};
  (void)sys(__NR_clock_gettime, kClockMonotonic, &time);
  return static_cast<std::uint64_t>(time.seconds) * kNanosecondsPerSecond +
         static_cast<std::uint64_t>(time.nanoseconds);
}

Word clone_on_stack(CloneArgs& args, int (*entry)(void*), void* argument) {
  args.stack = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(payload_stack));
  args.stack_size = kPayloadStack;
  // The child starts behind the call with an empty stack, so the code that runs in it can use
  // nothing of this frame: it calls `entry` from registers, and `entry` does not return.
#if defined(__x86_64__)
  register auto call __asm__("r12") = entry;
  register auto value __asm__("r13") = argument;
  Word result;
  __asm__ volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r13, %%rdi\n\t"
      "call *%%r12\n\t"
      "hlt\n"
      "1:"
      : "=a"(result)
      : "a"(Word{__NR_clone3}), "D"(&args), "S"(sizeof args), "r"(call), "r"(value)
      : "rcx", "r11", "memory");
  return result;
#else
  register auto call __asm__("x19") = entry;
  register auto value __asm__("x20") = argument;
  register Word x0 __asm__("x0") = word(&args);
  register Word x1 __asm__("x1") = sizeof args;
  register Word x8 __asm__("x8") = __NR_clone3;
  __asm__ volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "mov x0, x20\n\t"
      "blr x19\n\t"
      "brk #1\n"
      "1:"
      : "+r"(x0)
      : "r"(x1), "r"(x8), "r"(call), "r"(value)
      : "memory", "cc");
  return x0;
#endif
}

Word keep_capabilities(std::uint32_t kept) {
  (void)sys(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct sets[2] = {{kept, kept, 0}, {0, 0, 0}};
  return sys(__NR_capset, &header, sets);
}

Word write_checked(int fd, const char* bytes, std::size_t size) {
  const Word result = sys(__NR_write, fd, bytes, size);
  if (result < 0) return result;
  return static_cast<std::size_t>(result) == size ? 0 : -EIO;
}

Word open_beneath(int directory, const char* path, int flags, std::uint32_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | kOpenCloexec);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return sys(__NR_openat2, directory, path, &how, sizeof how);
}

Word set_mount_attributes(int mount, std::uint64_t attributes, bool recursive) {
  mount_attr change{};
  change.attr_set = attributes;
  return sys(__NR_mount_setattr, mount, "", kAtEmptyPath | (recursive ? kAtRecursive : 0), &change,
             sizeof change);
}

Word clone_mount(int directory, const char* path, bool recursive) {
  return sys(__NR_open_tree, directory, path,
             OPEN_TREE_CLONE | static_cast<unsigned>(kOpenCloexec) |
                 (recursive ? static_cast<unsigned>(kAtRecursive) : 0U) |
                 (*path == '\0' ? static_cast<unsigned>(kAtEmptyPath) : 0U));
}

Word make_tmpfs(const char* size, const char* inodes, const char* mode, const char* uid,
                std::uint64_t attributes) {
  const int context = static_cast<int>(sys(__NR_fsopen, "tmpfs", FSOPEN_CLOEXEC));
  if (context < 0) return context;
  const struct {
    const char* key;
    const char* value;
  } options[] = {
      {"size", size}, {"nr_inodes", inodes}, {"mode", mode}, {"uid", uid}, {"gid", uid},
  };
  Word result = 0;
  for (const auto& option : options) {
    if (option.value == nullptr || result < 0) continue;
    result = sys(__NR_fsconfig, context, FSCONFIG_SET_STRING, option.key, option.value, 0);
  }
  if (result == 0) {
    result = sys(__NR_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0);
  }
  if (result == 0) {
    result = sys(__NR_fsmount, context, FSMOUNT_CLOEXEC,
                 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | attributes);
  }
  close_fd(context);
  return result;
}

Word attach_mount(int mount, int target) {
  return sys(__NR_move_mount, mount, "", target, "",
             MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

bool on_filesystem(int fd, std::uint64_t magic) {
  // struct statfs, 64-bit kernels: f_type is the first word.
  std::uint64_t info[16] = {};
  return sys(__NR_fstatfs, fd, info) == 0 && info[0] == magic;
}

}  // namespace sbx::child
