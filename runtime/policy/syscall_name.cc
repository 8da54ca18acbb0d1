#include <fmt/core.h>

#include "runtime/policy/native_arch.h"
#include "runtime/policy/seccomp.h"
#include "runtime/policy/shipped.h"

namespace sbx::policy {
namespace {

std::string name_in(SyscallNames names, std::uint32_t nr) {
  if (nr < names.size() && names[nr] != nullptr) return names[nr];
  return fmt::format("syscall_{}", nr);
}

std::string prefixed(std::string_view abi, std::uint32_t audit_arch, std::string name) {
  return audit_arch == kNativeArch ? name : fmt::format("{}:{}", abi, name);
}

}  // namespace

std::string syscall_name(std::uint32_t audit_arch, std::uint32_t nr) {
  const SyscallNameTables& tables = syscall_name_tables();
  switch (audit_arch) {
    case AUDIT_ARCH_X86_64:
      if (is_foreign_abi(audit_arch, audit_arch, nr)) {
        return "x32:" + name_in(tables.x32, nr & ~kX32Bit);
      }
      return prefixed("x86_64", audit_arch, name_in(tables.x86_64, nr));
    case AUDIT_ARCH_I386:
      return prefixed("i386", audit_arch, name_in(tables.i386, nr));
    case AUDIT_ARCH_AARCH64:
      return prefixed("aarch64", audit_arch, name_in(tables.aarch64, nr));
    default:
      return fmt::format("arch_{:#x}:syscall_{}", audit_arch, nr);
  }
}

}  // namespace sbx::policy
