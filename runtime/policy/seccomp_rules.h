// The system call policy as rules by name, before it is compiled. Stage: policy.
//
// Read from policy/seccomp/*.toml (whose format policy/README.md explains); a profile's [seccomp]
// table is laid over it. One call has one rule, in one tier: a name that is listed twice is an
// error, which also keeps conditional and unconditional rules for one call apart.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/toml.h"
#include "runtime/policy/seccomp.h"

namespace sbx::policy {

enum class Tier {
  kAllow,     // the kernel does it
  kFiltered,  // the kernel does it when one case matches, else notified
  kQuiet,     // a plain errno, not reported: what libraries call at every start
  kDeny,      // notified, answered with an errno and counted
  kHostile,   // notified, ends the run
};

// (argument & mask) is one of `values`.
struct ArgumentTest {
  std::uint32_t argument = 0;
  std::uint64_t mask = 0xffffffff;
  std::vector<std::uint64_t> values;
};
// All tests hold.
using ArgumentCase = std::vector<ArgumentTest>;

struct CallRule {
  Tier tier = Tier::kDeny;
  std::uint16_t answer = 0;         // an errno or kAction…; of kAllow: EPERM, never used
  std::vector<ArgumentCase> cases;  // kFiltered only
  std::string group;                // where it was listed, for messages
  std::string risk;                 // kDeny: why it should not be opened; "" for nothing
};

struct RuleSet {
  std::map<std::string, CallRule, std::less<>> calls;
  std::map<std::string, std::vector<std::string>, std::less<>> groups;
};

// A file of policy/seccomp/: its name for messages, and its text.
using SeccompSource = std::pair<std::string_view, std::string_view>;

// kInvalid with file:line:key.
[[nodiscard]] Result<RuleSet> parse_rules(const std::vector<SeccompSource>& sources);

// What a profile gives a program beyond the rules, by name, sorted.
struct Loosening {
  // Were hostile and no longer are; that takes naming each of them, a group will not do.
  std::vector<std::string> loosened;
  // Were answered with an errno, or looked at by their arguments, and are the kernel's now.
  std::vector<std::string> opened;
};

// Lays a profile's [seccomp] table (allow, deny, hostile) over `rules`.
[[nodiscard]] Result<Loosening> apply_profile(RuleSet& rules, const TomlValue& seccomp,
                                              std::string_view origin);

// For AUDIT_ARCH_X86_64 or AUDIT_ARCH_AARCH64. Calls that this architecture does not have are left
// out.
[[nodiscard]] Result<SeccompPolicy> compile_rules(const RuleSet& rules, std::uint32_t audit_arch);

// The number of a call there, or nullopt. `exists_anywhere` tells a name of another architecture
// from a misspelt one.
[[nodiscard]] std::optional<std::uint32_t> syscall_number(std::string_view name,
                                                          std::uint32_t audit_arch);
[[nodiscard]] bool exists_anywhere(std::string_view name);

// "EPERM" → 1; "SUCCESS" → 0. nullopt for anything else.
[[nodiscard]] std::optional<std::uint16_t> errno_value(std::string_view name);
// Names of ioctl requests, prctl options, flags and the like: seccomp_constants.cc.
[[nodiscard]] std::optional<std::uint64_t> constant_value(std::string_view name);

}  // namespace sbx::policy
