// Attacks on how the box was set up: what the process is, and what it was left with. A table, with
// the columns of selftest_system_calls.cc.
#include <algorithm>
#include <string>

#include "runtime/cli/selftest_tables.h"
#include "runtime/plan/host_facts.h"

namespace sbx::cli {
namespace {

// One line, "65534 <id in the outer namespace> 1": neither the host's ids nor a range.
bool is_nested_map(std::string_view value) {
  if (std::count(value.begin(), value.end(), '|') != 1) return false;
  std::string words;
  for (const char c : value) {
    if (c == '|') break;
    if (c != ' ' || (!words.empty() && words.back() != ' ')) words += c;
  }
  while (!words.empty() && words.back() == ' ') words.pop_back();
  const std::size_t last = words.rfind(' ');
  return words.rfind("65534 ", 0) == 0 && last != std::string::npos && words.substr(last) == " 1";
}

// 1, or where the caller may have no more: 0, which is enough where cores go to files.
bool is_core_limit_that_holds(std::string_view limits) {
  return limits == "1/1" || (limits == "0/0" && !plan::core_pattern_is_piped());
}

constexpr AttackCase kSettingUpCases[] = {
    {kSettingUp, "no capability", "capabilities", "capabilities", "", "",
     value([](std::string_view held) { return held == "0"; }), kAway},
    {kSettingUp, "become root", "user_namespace", "setuid", "", "", refused(EINVAL, EPERM), kAway},
    {kSettingUp, "no host id in uid_map", "user_namespace", "uid_map", "", "", value(is_nested_map),
     kPlain, 0, true},
    {kSettingUp, "no_new_privs", "no_new_privs", "no_new_privs", "", "",
     value([](std::string_view on) { return on == "1"; }), kPlain, 0, true},
    {kSettingUp, "descriptors above 2", "-", "descriptors", "", "",
     value([](std::string_view open) { return open == "0"; }), kPlain},
    {kSettingUp, "core limit is 1", "rlimits", "core_limit_value", "", "",
     value(is_core_limit_that_holds), kPlain, 0, true},
    {kSettingUp, "core limit to 0", "seccomp", "prlimit_core", "", "", counted("prlimit64", EPERM),
     kPlain},
    {kSettingUp, "core limit to 0, high bits", "seccomp", "prlimit_core", "high", "high",
     counted("prlimit64", EPERM), kPlain},
    {kSettingUp, "core limit to 0 by setrlimit", "seccomp", "setrlimit_core", "", "",
     counted("setrlimit", EPERM), kPlain},
    {kSettingUp, "core limit to 0 by setrlimit, high bits", "seccomp", "setrlimit_core", "high",
     "high", counted("setrlimit", EPERM), kPlain},
    {kSettingUp, "type into the terminal", "seccomp", "tiocsti", "", "", counted("ioctl", ENOTTY),
     kPlain},
    {kSettingUp, "type into the terminal, high bits", "seccomp", "tiocsti", "high", "high",
     counted("ioctl", ENOTTY), kPlain},
    {kSettingUp, "paste into the terminal", "seccomp", "tioclinux", "", "",
     counted("ioctl", ENOTTY), kPlain},
    {kSettingUp, "paste into the terminal, high bits", "seccomp", "tioclinux", "high", "high",
     counted("ioctl", ENOTTY), kPlain},
    {kSettingUp, "change the line discipline", "seccomp", "tiocsetd", "", "",
     counted("ioctl", ENOTTY), kPlain},
};

}  // namespace

std::span<const AttackCase> setting_up_cases() {
  return kSettingUpCases;
}

}  // namespace sbx::cli
