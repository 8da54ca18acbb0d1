// A profile's TOML text to a Policy. Stage: policy. Used by the generator for the shipped profiles
// and by load_policy for a FILE; policy/README.md explains the format.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/seccomp_rules.h"

namespace sbx::policy {

// `seccomp` are the files of policy/seccomp/, which the profile's own [seccomp] table is laid over.
// kInvalid with file:line:key.
[[nodiscard]] Result<Policy> parse_profile(std::string_view text, std::string_view origin,
                                           const std::vector<SeccompSource>& seccomp,
                                           std::uint32_t audit_arch);

// The text of the profile that load_policy would load, a shipped one's too; not checked.
[[nodiscard]] Result<std::string> profile_source(std::string_view name_or_path);

}  // namespace sbx::policy
