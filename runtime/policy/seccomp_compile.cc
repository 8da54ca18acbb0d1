// Rules to BPF. libseccomp knows the numbers of the calls; the program is our own: its trees take a
// comparison for every call where ranges do, and loading a filter costs every run by the
// instruction.
#include <fmt/core.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <cerrno>
#include <cstddef>
#include <map>

#include "runtime/policy/seccomp_program.h"
#include "runtime/policy/seccomp_rules.h"

namespace sbx::policy {
namespace {

// The kernel's bound (BPF_MAXINSNS) on one filter.
constexpr std::size_t kMaxInstructions = 4096;

constexpr std::uint32_t kArchitectures[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64};

Error compile_error(std::string operation, int negative_errno, std::string detail) {
  Error error;
  error.operation = std::move(operation);
  error.sys_errno = -negative_errno;
  error.detail = std::move(detail);
  return error;
}

// __NR_SCMP_ERROR for a name that no architecture has, another negative number for one that this
// architecture lacks.
int resolve(std::string_view name, std::uint32_t audit_arch) {
  return ::seccomp_syscall_resolve_name_arch(audit_arch, std::string(name).c_str());
}

using Target = BpfProgram::Target;

constexpr Target kAllow = BpfProgram::ret(SECCOMP_RET_ALLOW);
// Also a foreign ABI: init sees the architecture and ends the run by name, while a SIGSYS could be
// faked by the program.
constexpr Target kNotify = BpfProgram::ret(SECCOMP_RET_USER_NOTIF);

// Both architectures are little-endian: the low half of an argument comes first.
constexpr std::uint32_t low_half(std::uint32_t argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + argument * 8);
}
constexpr std::uint32_t high_half(std::uint32_t argument) {
  return low_half(argument) + 4;
}

// On to `match` when (argument & mask) is one of the values, else to `other`. Each half by itself:
// a mask of 32 bits never looks at the other, where a program could put what it likes.
Target add_test(BpfProgram& program, const ArgumentTest& test, const Target& match,
                const Target& other) {
  std::map<std::uint32_t, std::map<std::uint32_t, Target>> by_high_half;
  for (const std::uint64_t value : test.values) {
    by_high_half[static_cast<std::uint32_t>(value >> 32U)]
                [static_cast<std::uint32_t>(value & 0xffffffffU)] = match;
  }
  const auto low_mask = static_cast<std::uint32_t>(test.mask & 0xffffffffU);
  const auto high_mask = static_cast<std::uint32_t>(test.mask >> 32U);
  std::map<std::uint32_t, Target> high_values;
  for (const auto& [high, low_values] : by_high_half) {
    const Target chosen = program.choose_value(low_values, other);
    high_values[high] = program.load(low_half(test.argument), program.mask(low_mask, chosen));
  }
  if (high_mask == 0) return high_values.at(0);
  const Target chosen = program.choose_value(high_values, other);
  return program.load(high_half(test.argument), program.mask(high_mask, chosen));
}

// Allowed when all tests of one case hold, else notified.
Target add_cases(BpfProgram& program, const std::vector<ArgumentCase>& cases) {
  Target next = kNotify;
  for (auto tests = cases.rbegin(); tests != cases.rend(); ++tests) {
    Target entry = kAllow;
    for (auto test = tests->rbegin(); test != tests->rend(); ++test) {
      entry = add_test(program, *test, entry, next);
    }
    next = entry;
  }
  return next;
}

Target add_call(BpfProgram& program, const CallRule& rule) {
  switch (rule.tier) {
    case Tier::kAllow:
      return kAllow;
    case Tier::kQuiet:
      return BpfProgram::ret(SECCOMP_RET_ERRNO | rule.answer);
    case Tier::kFiltered:
      return add_cases(program, rule.cases);
    case Tier::kDeny:
    case Tier::kHostile:
      break;
  }
  return kNotify;
}

// FNV-1a, 64 bits: names a version, protects nothing.
class Digest {
 public:
  void add(std::uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3ULL; }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

std::string digest_of(const SeccompPolicy& policy) {
  Digest digest;
  for (const std::uint8_t byte : policy.bpf) digest.add(byte);
  for (const std::uint16_t action : policy.actions) {
    digest.add(static_cast<std::uint8_t>(action & 0xffU));
    digest.add(static_cast<std::uint8_t>(action >> 8U));
  }
  return digest.text();
}

}  // namespace

std::optional<std::uint32_t> syscall_number(std::string_view name, std::uint32_t audit_arch) {
  const int number = resolve(name, audit_arch);
  if (number < 0) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

bool exists_anywhere(std::string_view name) {
  for (const std::uint32_t arch : kArchitectures) {
    if (syscall_number(name, arch)) return true;
  }
  return false;
}

Result<SeccompPolicy> compile_rules(const RuleSet& rules, std::uint32_t audit_arch) {
  SeccompPolicy policy;
  policy.audit_arch = audit_arch;
  policy.actions.fill(kActionUnknown);
  BpfProgram program;
  std::map<std::uint32_t, Target> calls;
  for (const auto& [name, rule] : rules.calls) {
    const auto number = syscall_number(name, audit_arch);
    if (!number) continue;
    if (*number >= kSyscallTableSize) return compile_error("compile_rules", -ERANGE, name);
    policy.actions[*number] = rule.answer;
    calls[*number] = add_call(program, rule);
  }
  // Every number without a rule is notified, and with them those of x32, which has its bit set.
  const Target by_number =
      program.load(offsetof(seccomp_data, nr), program.choose_value(calls, kNotify));
  program.load(offsetof(seccomp_data, arch),
               program.choose_value({{audit_arch, by_number}}, kNotify));
  policy.bpf = program.bytes();
  if (policy.bpf.size() > kMaxInstructions * sizeof(sock_filter)) {
    return compile_error("compile_rules", -E2BIG, "the filter");
  }
  policy.digest = digest_of(policy);
  return policy;
}

}  // namespace sbx::policy
