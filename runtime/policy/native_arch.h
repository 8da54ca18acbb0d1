// The architecture that this library was compiled for, as seccomp(2) names it. Internal to policy.
#pragma once

#include <linux/audit.h>

#include <cstdint>

namespace sbx::policy {

#if defined(__x86_64__)
inline constexpr std::uint32_t kNativeArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
inline constexpr std::uint32_t kNativeArch = AUDIT_ARCH_AARCH64;
#else
#error "sbx supports x86-64 and aarch64"
#endif

}  // namespace sbx::policy
