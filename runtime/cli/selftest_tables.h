// What the tables of attacks are written with. Stage: edge (sbx-run); internal to the tables.
#pragma once

#include <cerrno>

#include "runtime/cli/selftest_cases.h"

namespace sbx::cli {

// The run ends for this call.
constexpr Expectation hostile(std::string_view syscall) {
  Expectation expected;
  expected.hostile_syscall = syscall;
  return expected;
}

// An errno, without a report: from the kernel, or from the filter itself.
constexpr Expectation refused(int first, int second = 0, int third = 0) {
  Expectation expected;
  expected.errnos = {first, second, third};
  return expected;
}

// An errno of the filter's, and the call is counted by this name.
constexpr Expectation counted(std::string_view syscall, int sys_errno) {
  Expectation expected;
  expected.counted_syscall = syscall;
  expected.errnos = {sys_errno, 0, 0};
  return expected;
}

// What is seen, or, where the thing may be missing altogether, an errno.
constexpr Expectation value(bool (*looks_right)(std::string_view), int or_errno = 0) {
  Expectation expected;
  expected.errnos = {or_errno, 0, 0};
  expected.looks_right = looks_right;
  return expected;
}

// The filter says that it is done, and does nothing. Outside the kernel refuses the argument.
constexpr Expectation ignored() {
  return value([](std::string_view said) { return said.empty(); });
}

inline constexpr AttackClass kCalls = AttackClass::kSystemCalls;
inline constexpr AttackClass kViews = AttackClass::kViews;
inline constexpr AttackClass kNetwork = AttackClass::kNetwork;
inline constexpr AttackClass kSettingUp = AttackClass::kSettingUp;
inline constexpr Control kAway = Control::kThrowAway;
inline constexpr Control kPlain = Control::kPlain;
inline constexpr Control kRoot = Control::kRoot;

// One table each (selftest_system_calls.cc, …).
[[nodiscard]] std::span<const AttackCase> system_call_cases();
[[nodiscard]] std::span<const AttackCase> view_cases();
[[nodiscard]] std::span<const AttackCase> network_cases();
[[nodiscard]] std::span<const AttackCase> setting_up_cases();

}  // namespace sbx::cli
