// Landlock: a second layer under the mounts. The payload may write only beneath its tmpfs mounts,
// and to the device nodes. Stage: child, payload. Optional: Linux 5.13, not in every kernel.
#include <asm-generic/errno.h>
#include <linux/landlock.h>

#include "runtime/child/context.h"
#include "runtime/child/kernel.h"

namespace sbx::child {
namespace {

// Rights newer than Debian 12's headers.
constexpr std::uint64_t kRefer = 1ULL << 13;     // ABI 2, Linux 5.19
constexpr std::uint64_t kTruncate = 1ULL << 14;  // ABI 3, Linux 6.2

constexpr std::uint64_t kWriteRights =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM;

struct PathRule {
  std::uint64_t allowed_access;
  std::int32_t parent_fd;
} __attribute__((packed));

Word allow_beneath(int ruleset, const char* path, std::uint64_t rights) {
  PathRule rule{rights, static_cast<std::int32_t>(
                            sys(__NR_openat, kAtFdcwd, path, kOpenPath | kOpenCloexec, 0))};
  if (rule.parent_fd < 0) return rule.parent_fd;
  const Word result = sys(__NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  close_fd(rule.parent_fd);
  return result;
}

Word allow_writable(Context& context, int ruleset, std::uint64_t rights) {
  for (std::uint32_t i = 0; i < context.plan->writable_count; ++i) {
    const Word result = allow_beneath(ruleset, context.text(context.plan->writable[i]), rights);
    if (result < 0) return result;
  }
  // Device nodes: writing and truncating (open(…, O_TRUNC) of /dev/null), nothing that makes a
  // name.
  return allow_beneath(ruleset, "/dev", rights & (LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate));
}

}  // namespace

Word restrict_writes(Context& context) {
  const Word abi = sys(__NR_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 0) return abi;
  // REFER is always denied by a ruleset that does not handle it; ABI 1 cannot allow renames between
  // directories at all, which programs need, so it is left alone there.
  if (abi < 2) return -EOPNOTSUPP;
  const std::uint64_t rights = kWriteRights | kRefer | (abi >= 3 ? kTruncate : 0);
  const std::uint64_t handled[1] = {rights};  // struct landlock_ruleset_attr of ABI 1–3
  const int ruleset =
      static_cast<int>(sys(__NR_landlock_create_ruleset, handled, sizeof handled, 0));
  if (ruleset < 0) return ruleset;
  Word result = allow_writable(context, ruleset, rights);
  if (result == 0) result = sys(__NR_landlock_restrict_self, ruleset, 0);
  close_fd(ruleset);
  return result;
}

}  // namespace sbx::child
