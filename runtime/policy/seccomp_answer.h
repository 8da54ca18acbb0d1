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
// Of fcntl: a record lock is counted, and goes on while the run may have more; EINVAL for the rest.
inline constexpr std::uint16_t kActionRecordLocks = 0xfffd;

// F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, on every architecture of ours.
[[nodiscard]] constexpr bool is_record_lock(std::uint32_t command) {
  return command == 6 || command == 7 || command == 37 || command == 38;
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

// The errno for a notified call, or kActionHostile, or kActionRecordLocks for a record lock.
// `actions` has kSyscallTableSize entries; `argument` is the call's second one.
// SECURITY: no answer but kActionRecordLocks lets the call go on.
[[nodiscard]] constexpr std::uint16_t answer_notified(const std::uint16_t* actions,
                                                      std::uint32_t policy_arch, std::uint32_t arch,
                                                      std::uint32_t nr, std::uint64_t argument) {
  constexpr std::uint16_t kEinval = 22;
  constexpr std::uint16_t kEnosys = 38;
  if (is_foreign_abi(policy_arch, arch, nr)) return kActionHostile;
  if (nr >= kSyscallTableSize || actions[nr] == kActionUnknown) return kEnosys;
  if (actions[nr] != kActionRecordLocks) return actions[nr];
  return is_record_lock(static_cast<std::uint32_t>(argument)) ? kActionRecordLocks : kEinval;
}

}  // namespace sbx::policy
