// The files of policy/, as the tests of this folder read them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/policy/seccomp_rules.h"

namespace sbx::test {

// Name ("default.toml") and text of each *.toml of policy/<folder>/, sorted.
using PolicyFiles = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] PolicyFiles policy_files(const std::string& folder);

// The rules of policy/seccomp/ with the overlay of the shipped profile `name`.
[[nodiscard]] policy::RuleSet rules_of_profile(const std::string& name);

// The error text of a Result, or "no error".
template <typename T>
std::string error_of(const Result<T>& result) {
  return result ? "no error" : to_string(result.error());
}

}  // namespace sbx::test
