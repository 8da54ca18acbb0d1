// A compiled system call policy: BPF bytes for the kernel and a table for sbx-init. Stage: policy.
//
// Built once (at build time for shipped profiles, at start for a profile FILE), never in the child.
// The BPF program allows, answers a few numbers with a plain errno, and sends everything else to
// user notification; sbx-init then looks the number up in `actions` (seccomp_answer.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/policy/seccomp_answer.h"

namespace sbx::policy {

struct SeccompPolicy {
  std::string digest;             // FNV-1a of the compiled policy: names the version in a plan
  std::vector<std::uint8_t> bpf;  // struct sock_filter[], 8 bytes each
  std::uint32_t audit_arch = 0;   // AUDIT_ARCH_* the program is for; any other arch is hostile
  std::vector<std::string>
      loosened;                     // hostile calls that the profile made allowed or merely denied
  std::vector<std::string> opened;  // other calls that it allowed beyond the default policy
  // By number: the errno to answer a notified call with, or one of seccomp_answer.h. A number
  // that the policy allows has an entry too (EPERM): it is notified only when an argument filter
  // did not match.
  std::array<std::uint16_t, kSyscallTableSize> actions{};
};

// What a profile gave a program beyond the default policy, in words: "no longer hostile: ptrace;
// opened: io_uring_setup". "" for nothing.
[[nodiscard]] std::string loosening_text(const SeccompPolicy& policy);

// The name of a call ("mount"), or "syscall_<nr>" when no table knows it; with "x32:", "i386:" or
// "arch_0x…:" in front for an ABI that is not this build's own.
[[nodiscard]] std::string syscall_name(std::uint32_t audit_arch, std::uint32_t nr);

}  // namespace sbx::policy
