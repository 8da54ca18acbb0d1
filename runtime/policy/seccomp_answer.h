// How a notified system call is answered: what tests of a compiled policy expect of sbx-init.
// Stage: policy.
//
// sbx-init itself may include nothing of this stage: its copy is action_for in
// runtime/child/loop.cc.
#pragma once

#include <cstdint>

namespace sbx::policy {

// Numbers at or past it are unknown: ENOSYS.
inline constexpr std::uint32_t kSyscallTableSize = 512;
inline constexpr std::uint16_t kActionHostile = 0xffff;  // ends the run with verdict security
// ENOSYS, of a number that the policy does not name: there are more of those than init can count.
inline constexpr std::uint16_t kActionUnknown = 0xfffe;
// Of fcntl and flock: what may take a lock goes on while the run may hold more; EINVAL for the
// rest.
inline constexpr std::uint16_t kActionRecordLocks = 0xfffd;
inline constexpr std::uint16_t kActionFlocks = 0xfffc;
// Of clone: hostile where it asks for a namespace, EINVAL for the rest.
inline constexpr std::uint16_t kActionNamespaces = 0xfffb;

// F_SETLK, F_SETLKW, on every architecture of ours.
[[nodiscard]] constexpr bool is_record_lock(std::uint32_t command) {
  return command == 6 || command == 7;
}
// LOCK_SH, LOCK_EX, with LOCK_NB or without.
[[nodiscard]] constexpr bool is_flock(std::uint32_t operation) {
  return (operation & ~4U) == 1 || (operation & ~4U) == 2;
}
// Any CLONE_NEW… that clone(2) knows.
[[nodiscard]] constexpr bool asks_for_namespace(std::uint32_t flags) {
  return (flags & 0x7e020000U) != 0;
}

inline constexpr std::uint32_t kAuditArchX86_64 = 0xc000003e;  // AUDIT_ARCH_X86_64
inline constexpr std::uint32_t kX32Bit = 0x40000000;           // __X32_SYSCALL_BIT

// True for a call through another ABI than the policy's. x32 shares the architecture of x86-64 and
// is told by a bit of the number; -1 has that bit too, but is no call of any ABI.
[[nodiscard]] constexpr bool is_foreign_abi(std::uint32_t policy_arch, std::uint32_t arch,
                                            std::uint32_t nr) {
  if (arch != policy_arch) return true;
  return arch == kAuditArchX86_64 && (nr & kX32Bit) != 0 && nr != ~std::uint32_t{0};
}

// The errno for a notified call, or kActionHostile, or kActionRecordLocks or kActionFlocks for what
// may take a lock. `actions` has kSyscallTableSize entries; `args` are the call's six.
// SECURITY: no answer but those for locks lets the call go on.
[[nodiscard]] constexpr std::uint16_t answer_notified(const std::uint16_t* actions,
                                                      std::uint32_t policy_arch, std::uint32_t arch,
                                                      std::uint32_t nr, const std::uint64_t* args) {
  constexpr std::uint16_t kEinval = 22;
  constexpr std::uint16_t kEnosys = 38;
  if (is_foreign_abi(policy_arch, arch, nr)) return kActionHostile;
  if (nr >= kSyscallTableSize || actions[nr] == kActionUnknown) return kEnosys;
  const auto first = static_cast<std::uint32_t>(args[0]);
  const auto second = static_cast<std::uint32_t>(args[1]);
  switch (actions[nr]) {
    case kActionRecordLocks:
      return is_record_lock(second) ? kActionRecordLocks : kEinval;
    case kActionFlocks:
      return is_flock(second) ? kActionFlocks : kEinval;
    case kActionNamespaces:
      return asks_for_namespace(first) ? kActionHostile : kEinval;
    default:
      return actions[nr];
  }
}

}  // namespace sbx::policy
