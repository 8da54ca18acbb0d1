// Writes the C++ text of runtime/policy/shipped.cc. Build tool only (sbx-policyc).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/policy/language.h"
#include "runtime/policy/policy.h"

namespace sbx::policy {

// Everything under policy/, parsed; `seccomp` as name and text.
struct PolicyData {
  std::vector<Policy> profiles;
  std::vector<std::string> profile_texts;  // of each, its file
  std::vector<Language> languages;
  std::vector<std::pair<std::string, std::string>> seccomp;
};

[[nodiscard]] std::string emit_shipped(const PolicyData& data);

}  // namespace sbx::policy
