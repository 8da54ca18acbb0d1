// A compiled filter and init's answers together, asked call by call.
#pragma once

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "runtime/policy/seccomp_rules.h"
#include "tests/support/bpf_interpreter.h"
#include "tests/unit/policy/policy_files.h"

namespace sbx::test {

// Set in an argument of which the kernel reads 32 bits, they must change nothing.
inline constexpr std::uint64_t kHighBits = 0xdeadbeef00000000;

// What becomes of a call, filter and init together.
enum class Fate { kAllowed, kQuiet, kDenied, kHostile, kCounted, kBroken };

struct Outcome {
  Fate fate = Fate::kBroken;
  std::uint16_t error = 0;
  bool operator==(const Outcome&) const = default;
};

inline void PrintTo(const Outcome& outcome, std::ostream* out) {
  constexpr const char* kNames[] = {"allowed", "quiet", "denied", "hostile", "counted", "broken"};
  *out << kNames[static_cast<int>(outcome.fate)] << " " << outcome.error;
}

inline Outcome outcome_of(const policy::SeccompPolicy& filter, const Call& call) {
  const auto verdict = run_filter(filter.bpf, call);
  if (!verdict) return {};
  const std::uint32_t action = *verdict & SECCOMP_RET_ACTION_FULL;
  if (action == SECCOMP_RET_ALLOW) return {Fate::kAllowed, 0};
  if (action == SECCOMP_RET_ERRNO) {
    return {Fate::kQuiet, static_cast<std::uint16_t>(*verdict & SECCOMP_RET_DATA)};
  }
  if (action != SECCOMP_RET_USER_NOTIF) return {};
  const std::uint16_t answer = policy::answer_notified(filter.actions.data(), filter.audit_arch,
                                                       call.arch, call.nr, call.args.data());
  if (answer == policy::kActionHostile) return {Fate::kHostile, 0};
  if (answer == policy::kActionRecordLocks || answer == policy::kActionFlocks) {
    return {Fate::kCounted, 0};
  }
  return {Fate::kDenied, answer};
}

// One policy, as compiled for one architecture.
class Filter {
 public:
  explicit Filter(std::uint32_t arch = AUDIT_ARCH_X86_64, const std::string& profile = "default") {
    auto compiled = policy::compile_rules(rules_of_profile(profile), arch);
    EXPECT_TRUE(compiled) << error_of(compiled);
    policy_ = *std::move(compiled);
  }

  // The default policy under a profile's table [seccomp].
  [[nodiscard]] static Filter with(const std::string& overlay) {
    Filter filter;
    policy::RuleSet rules = rules_of_profile("default");
    const auto table = parse_toml(overlay, "overlay");
    EXPECT_TRUE(table) << error_of(table);
    EXPECT_TRUE(policy::apply_profile(rules, *table, "overlay"));
    auto compiled = policy::compile_rules(rules, filter.policy_.audit_arch);
    EXPECT_TRUE(compiled) << error_of(compiled);
    filter.policy_ = *std::move(compiled);
    return filter;
  }

  [[nodiscard]] Outcome ask(std::string_view name, std::array<std::uint64_t, 6> args = {}) const {
    const auto nr = policy::syscall_number(name, policy_.audit_arch);
    EXPECT_TRUE(nr.has_value()) << name;
    return outcome_of(policy_, {nr.value_or(0), policy_.audit_arch, 0, args});
  }
  [[nodiscard]] const policy::SeccompPolicy& policy() const { return policy_; }

 private:
  policy::SeccompPolicy policy_;
};

inline constexpr Outcome kAllowed{Fate::kAllowed, 0};
inline constexpr Outcome kHostile{Fate::kHostile, 0};
inline constexpr Outcome kCounted{Fate::kCounted, 0};
constexpr Outcome denied(std::uint16_t error) {
  return {Fate::kDenied, error};
}
constexpr Outcome quiet(std::uint16_t error) {
  return {Fate::kQuiet, error};
}

}  // namespace sbx::test
