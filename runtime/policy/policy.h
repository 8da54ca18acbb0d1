// Policy: a validated profile with overrides applied; says what a run may use. Stage: policy.
//
// A value; makes no process and touches no kernel object. Shipped profiles are constants made at
// build from policy/profiles/*.toml (a test compares them); only a profile FILE is parsed at run
// time, strictly: an unknown key is an error with file:line:key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/policy/layers.h"
#include "runtime/policy/limits.h"
#include "runtime/policy/seccomp.h"

namespace sbx::policy {

struct Policy {
  std::string profile;      // "default", or the file's own name
  std::string description;  // one line
  Limits limits;
  SeccompPolicy seccomp;
  LayerMask allow_missing = 0;  // required layers the caller explicitly does without
};

// The names of the shipped profiles.
[[nodiscard]] std::vector<std::string> shipped_profiles();
// A shipped profile by name, else the profile in the file at that path (a name with '/' or ending
// in .toml is a path). kInvalid with file:line:key, or with the names that exist.
[[nodiscard]] Result<Policy> load_policy(std::string_view name_or_path);
// The same from text; `origin` stands for the file's name in errors.
[[nodiscard]] Result<Policy> parse_policy(std::string_view text, std::string_view origin);

// Why a profile should not open this call, in words that can follow "because"; "" when nothing
// speaks against it. Parses the shipped policy's text.
[[nodiscard]] std::string risk_of_opening(std::string_view syscall);

}  // namespace sbx::policy
