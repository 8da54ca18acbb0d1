// The compiled filters against the rules that they were made of, and against the kernel.
#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/policy/policy.h"
#include "tests/unit/policy/filter_under_test.h"

namespace sbx::policy {
namespace {

using test::Call;
using test::denied;
using test::Filter;
using test::kAllowed;
using test::kCounted;
using test::kHighBits;
using test::kHostile;
using test::Outcome;
using test::outcome_of;
using test::quiet;

// ---- the whole filter against the rules it was made of
// --------------------------------------------

bool case_matches(const ArgumentCase& tests, const std::array<std::uint64_t, 6>& args) {
  return std::all_of(tests.begin(), tests.end(), [&](const ArgumentTest& test) {
    return std::find(test.values.begin(), test.values.end(), args[test.argument] & test.mask) !=
           test.values.end();
  });
}

// The kernel reads 32 bits of each.
bool is_lock(std::uint64_t command) {
  const std::uint64_t low = command & 0xffffffffU;
  return low == F_SETLK || low == F_SETLKW;
}
bool is_flock(std::uint64_t operation) {
  const std::uint64_t low = operation & 0xffffffffU & ~std::uint64_t{LOCK_NB};
  return low == LOCK_SH || low == LOCK_EX;
}
bool asks_for_namespace(std::uint64_t flags) {
  constexpr std::uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                        CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  return (flags & kNamespaces) != 0;
}

// Of a filtered call that no case allows.
Outcome answer_of_init(std::uint16_t answer, const std::array<std::uint64_t, 6>& args) {
  switch (answer) {
    case kActionRecordLocks:
      return is_lock(args[1]) ? kCounted : denied(EINVAL);
    case kActionFlocks:
      return is_flock(args[1]) ? kCounted : denied(EINVAL);
    case kActionNamespaces:
      return asks_for_namespace(args[0]) ? kHostile : denied(EINVAL);
    case kActionHostile:
      return kHostile;
    default:
      return denied(answer);
  }
}

Outcome expected_of(const CallRule& rule, const std::array<std::uint64_t, 6>& args) {
  switch (rule.tier) {
    case Tier::kAllow:
      return kAllowed;
    case Tier::kQuiet:
      return quiet(rule.answer);
    case Tier::kDeny:
      return denied(rule.answer);
    case Tier::kHostile:
      return kHostile;
    case Tier::kFiltered:
      for (const ArgumentCase& tests : rule.cases) {
        if (case_matches(tests, args)) return kAllowed;
      }
      return answer_of_init(rule.answer, args);
  }
  return {};
}

// Every value that a test of this argument names, its neighbours, and both with high bits.
std::vector<std::uint64_t> probes(const CallRule& rule, std::uint32_t argument) {
  std::vector<std::uint64_t> values = {0, 1, 0xffffffff, ~std::uint64_t{0}};
  for (const ArgumentCase& tests : rule.cases) {
    for (const ArgumentTest& test : tests) {
      if (test.argument != argument) continue;
      values.push_back(test.mask);
      for (const std::uint64_t value : test.values) {
        values.insert(values.end(), {value, value + 1, value - 1, value | 0x80000, value << 1U});
      }
    }
  }
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(values[i] ^ kHighBits);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

void expect_rule(const SeccompPolicy& policy, const std::string& name, const CallRule& rule,
                 std::uint32_t nr) {
  for (const std::uint64_t arg0 : probes(rule, 0)) {
    for (const std::uint64_t arg1 : probes(rule, 1)) {
      for (const std::uint64_t arg2 : probes(rule, 2)) {
        const std::array<std::uint64_t, 6> args = {arg0, arg1, arg2, 5, 6, 7};
        ASSERT_EQ(outcome_of(policy, {nr, policy.audit_arch, 0, args}), expected_of(rule, args))
            << name << std::hex << " " << arg0 << " " << arg1 << " " << arg2;
      }
    }
  }
}

class CompiledFilter : public ::testing::TestWithParam<std::tuple<std::uint32_t, std::string>> {};

TEST_P(CompiledFilter, DoesWhatItsRulesSayForEveryNumberAndArgument) {
  const auto& [arch, profile] = GetParam();
  const RuleSet rules = test::rules_of_profile(profile);
  const auto policy = compile_rules(rules, arch);
  ASSERT_TRUE(policy) << test::error_of(policy);
  std::array<bool, kSyscallTableSize> known{};
  for (const auto& [name, rule] : rules.calls) {
    const auto nr = syscall_number(name, arch);
    if (!nr) continue;
    ASSERT_LT(*nr, known.size());
    known[*nr] = true;
    expect_rule(*policy, name, rule, *nr);
  }
  for (std::uint32_t nr = 0; nr < 2048; ++nr) {
    if (nr < known.size() && known[nr]) continue;
    EXPECT_EQ(outcome_of(*policy, {nr, arch, 0, {}}), denied(ENOSYS)) << nr;
  }
}

TEST_P(CompiledFilter, IsShortEnoughToBeCheap) {
  const auto& [arch, profile] = GetParam();
  const auto policy = compile_rules(test::rules_of_profile(profile), arch);
  ASSERT_TRUE(policy);
  EXPECT_LE(policy->bpf.size() / sizeof(sock_filter), 360U);
}

INSTANTIATE_TEST_SUITE_P(EveryProfile, CompiledFilter,
                         ::testing::Combine(::testing::Values(AUDIT_ARCH_X86_64,
                                                              AUDIT_ARCH_AARCH64),
                                            ::testing::Values("default", "large", "judge")));

TEST(ShippedFilter, IsTheOneThatWasChecked) {
  for (const std::string& name : shipped_profiles()) {
    const auto shipped = load_policy(name);
    const Filter filter(shipped->seccomp.audit_arch, name);
    EXPECT_EQ(shipped->seccomp.bpf, filter.policy().bpf) << name;
    EXPECT_EQ(shipped->seccomp.actions, filter.policy().actions) << name;
  }
}

// ---- other ABIs
// -------------------------------------------------------------------------------------

TEST(ForeignAbi, X32IsHostileWhateverTheNumber) {
  const Filter filter;
  for (std::uint32_t nr = 0; nr < 600; ++nr) {
    const Call call{kX32Bit | nr, AUDIT_ARCH_X86_64, 0, {}};
    ASSERT_EQ(outcome_of(filter.policy(), call), kHostile) << nr;
  }
  EXPECT_EQ(outcome_of(filter.policy(), {0x80000000, AUDIT_ARCH_X86_64, 0, {}}), denied(ENOSYS));
  EXPECT_EQ(outcome_of(filter.policy(), {0xfffffffe, AUDIT_ARCH_X86_64, 0, {}}), kHostile);
}

TEST(ForeignAbi, TheBitOfX32MeansNothingElsewhere) {
  const Filter filter(AUDIT_ARCH_AARCH64);
  const Call call{kX32Bit | 1, AUDIT_ARCH_AARCH64, 0, {}};
  EXPECT_EQ(outcome_of(filter.policy(), call), denied(ENOSYS));
}

TEST(ForeignAbi, I386AndAnyOtherArchitectureIsHostile) {
  const Filter filter;
  constexpr std::uint32_t kOthers[] = {AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, AUDIT_ARCH_ARM, 0,
                                       0x4000003e,      0xffffffff};
  for (const std::uint32_t arch : kOthers) {
    for (const std::uint32_t nr : {0U, 1U, 11U, 59U, 511U, 512U, 0x40000001U, 0xffffffffU}) {
      EXPECT_EQ(outcome_of(filter.policy(), {nr, arch, 0, {}}), kHostile) << std::hex << arch;
    }
  }
  const Filter arm(AUDIT_ARCH_AARCH64);
  EXPECT_EQ(outcome_of(arm.policy(), {64, AUDIT_ARCH_ARM, 0, {}}), kHostile);
  EXPECT_EQ(outcome_of(arm.policy(), {0x40000040, AUDIT_ARCH_AARCH64, 0, {}}), denied(ENOSYS));
}

TEST(UnknownNumber, AndMinusOneAreEnosys) {
  const Filter filter;
  for (const std::uint32_t nr : {480U, 511U, 512U, 1000U, 0x3fffffffU, 0xffffffffU}) {
    EXPECT_EQ(outcome_of(filter.policy(), {nr, AUDIT_ARCH_X86_64, 0, {}}), denied(ENOSYS)) << nr;
  }
}

// ---- the kernel's own opinion
// ---------------------------------------------------------------------------

// Exit codes of the child below.
constexpr int kLoaded = 0;
constexpr int kRefused = 1;
constexpr int kNotFiltered = 2;

// In a forked child: without a listener, a notified call is ENOSYS.
[[noreturn]] void load_and_probe(const SeccompPolicy& policy) {
  std::vector<sock_filter> program(policy.bpf.size() / sizeof(sock_filter));
  std::copy(policy.bpf.begin(), policy.bpf.end(), reinterpret_cast<std::uint8_t*>(program.data()));
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ::_exit(kRefused);
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0) ::_exit(kRefused);
  const bool mount_stopped = ::syscall(SYS_mount, 0, 0, 0, 0, 0) == -1 && errno == ENOSYS;
  const bool clone3_stopped = ::syscall(SYS_clone3, 0, 0) == -1 && errno == ENOSYS;
  ::_exit(mount_stopped && clone3_stopped && ::getpid() > 0 ? kLoaded : kNotFiltered);
}

TEST(ShippedFilter, IsTakenByTheKernel) {
  for (const std::string& name : shipped_profiles()) {
    const auto policy = load_policy(name);
    ASSERT_TRUE(policy);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) load_and_probe(policy->seccomp);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << name;
    EXPECT_EQ(WEXITSTATUS(status), kLoaded) << name;
  }
}

}  // namespace
}  // namespace sbx::policy
