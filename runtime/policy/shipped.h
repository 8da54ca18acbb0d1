// What sbx-policyc wrote at build: the shipped profiles, the languages, the seccomp policy's text
// (for profiles in files) and the names of system calls. Stage: policy. Constants; shipped.cc is
// generated.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/policy/language.h"
#include "runtime/policy/seccomp.h"

namespace sbx::policy {

struct ShippedProfile {
  std::string_view name;
  std::string_view description;
  std::string_view digest;
  std::string_view text;  // the whole file
  // Name and text of each limit, for set_limit: its table stays the only place that knows their
  // types.
  std::span<const std::pair<std::string_view, std::string_view>> limits;
  std::span<const std::string_view> loosened, opened;
  std::uint32_t audit_arch;
  std::span<const std::uint8_t> bpf;
  std::span<const std::uint16_t, kSyscallTableSize> actions;
};

// Numbers at or past it have no name. x32 has calls of its own up to 547.
inline constexpr std::uint32_t kSyscallNameCount = 600;
using SyscallNames = std::span<const char* const, kSyscallNameCount>;  // null: no such call

struct SyscallNameTables {
  SyscallNames x86_64;
  SyscallNames x32;  // by number without the x32 bit
  SyscallNames i386;
  SyscallNames aarch64;
};

[[nodiscard]] std::span<const ShippedProfile> shipped_profile_table();
[[nodiscard]] std::vector<Language> make_shipped_languages();
// Name and text of each file of policy/seccomp/.
[[nodiscard]] std::span<const std::pair<std::string_view, std::string_view>> shipped_seccomp_text();
[[nodiscard]] const SyscallNameTables& syscall_name_tables();

}  // namespace sbx::policy
