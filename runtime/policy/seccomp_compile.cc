// Rules to BPF, with libseccomp.
#include <fmt/format.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "runtime/base/sys.h"
#include "runtime/policy/seccomp_rules.h"

namespace sbx::policy {
namespace {

// The highest API level of libseccomp 2.5. Set, not probed: the kernel that compiles a policy need
// not be the one that runs it, and one without notification would otherwise make libseccomp refuse
// it.
constexpr unsigned kApiLevel = 6;
// The kernel's bound (BPF_MAXINSNS) on one filter.
constexpr std::size_t kMaxInstructions = 4096;
constexpr std::size_t kInstructionSize = 8;

constexpr std::uint32_t kArchitectures[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64};

struct ReleaseFilter {
  void operator()(void* filter) const { ::seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, ReleaseFilter>;

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

Result<Filter> new_filter(std::uint32_t audit_arch) {
  (void)::seccomp_api_set(kApiLevel);  // refused only when unknown; then seccomp_init says it
  Filter filter(::seccomp_init(SCMP_ACT_NOTIFY));
  if (filter == nullptr) return compile_error("seccomp_init", -ENOMEM, "notify");
  if (::seccomp_arch_native() != audit_arch) {
    int rc = ::seccomp_arch_remove(filter.get(), SCMP_ARCH_NATIVE);
    if (rc == 0) rc = ::seccomp_arch_add(filter.get(), audit_arch);
    if (rc != 0) return compile_error("seccomp_arch_add", rc, fmt::format("{:#x}", audit_arch));
  }
  // A foreign ABI is notified too: init sees the architecture and ends the run by name, while a
  // SIGSYS could be faked by the program. x32 is a "bad architecture" as long as only x86-64 is
  // added.
  int rc = ::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_NOTIFY);
  // 2: a binary tree over the numbers instead of a list.
  if (rc == 0) rc = ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (rc != 0) return compile_error("seccomp_attr_set", rc, "");
  return filter;
}

// Adds one allow rule for every combination of the values of `tests`, from `index` on.
int add_case(void* filter, int number, const ArgumentCase& tests, std::size_t index,
             std::vector<scmp_arg_cmp>& chosen) {
  if (index == tests.size()) {
    return ::seccomp_rule_add_exact_array(filter, SCMP_ACT_ALLOW, number,
                                          static_cast<unsigned>(chosen.size()), chosen.data());
  }
  const ArgumentTest& test = tests[index];
  for (const std::uint64_t value : test.values) {
    // Never SCMP_CMP_NE or EQ: they compare 64 bits of what the kernel takes for an int.
    chosen.push_back({test.argument, SCMP_CMP_MASKED_EQ, test.mask, value});
    const int rc = add_case(filter, number, tests, index + 1, chosen);
    chosen.pop_back();
    // EEXIST: two cases overlap in one combination, which is already there.
    if (rc != 0 && rc != -EEXIST) return rc;
  }
  return 0;
}

int add_call(void* filter, int number, const CallRule& rule) {
  switch (rule.tier) {
    case Tier::kAllow:
      return ::seccomp_rule_add_exact(filter, SCMP_ACT_ALLOW, number, 0);
    case Tier::kQuiet:
      return ::seccomp_rule_add_exact(filter, SCMP_ACT_ERRNO(rule.answer), number, 0);
    case Tier::kFiltered:
      for (const ArgumentCase& tests : rule.cases) {
        std::vector<scmp_arg_cmp> chosen;
        if (const int rc = add_case(filter, number, tests, 0, chosen); rc != 0) return rc;
      }
      return 0;
    case Tier::kDeny:
    case Tier::kHostile:
      return 0;  // the default action: notify
  }
  return -EINVAL;
}

Result<std::vector<std::uint8_t>> export_bpf(void* filter) {
  // libseccomp 2.5 exports to a descriptor only.
  const UniqueFd file(::memfd_create("sbx-seccomp", MFD_CLOEXEC));
  if (!file) return sys_error("memfd_create");
  if (const int rc = ::seccomp_export_bpf(filter, file.get()); rc != 0) {
    return compile_error("seccomp_export_bpf", rc, "");
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return sys_error("lseek");
  SBX_ASSIGN(const std::string bytes,
             sys::read_all(file.get(), kMaxInstructions * kInstructionSize));
  return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
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
  SBX_ASSIGN(const Filter filter, new_filter(audit_arch));
  SeccompPolicy policy;
  policy.audit_arch = audit_arch;
  policy.actions.fill(ENOSYS);
  for (const auto& [name, rule] : rules.calls) {
    const auto number = syscall_number(name, audit_arch);
    if (!number) continue;
    if (*number >= kSyscallTableSize) return compile_error("compile_rules", -ERANGE, name);
    policy.actions[*number] = rule.answer;
    // Rules are added by the build machine's own number, which libseccomp translates.
    const int rc = add_call(filter.get(), resolve(name, ::seccomp_arch_native()), rule);
    if (rc != 0) return compile_error("seccomp_rule_add", rc, name);
  }
  SBX_ASSIGN(policy.bpf, export_bpf(filter.get()));
  policy.digest = digest_of(policy);
  return policy;
}

}  // namespace sbx::policy
