#include "runtime/policy/policy.h"

#include <fmt/format.h>

#include "runtime/base/sys.h"
#include "runtime/base/toml.h"
#include "runtime/policy/native_arch.h"
#include "runtime/policy/profile.h"
#include "runtime/policy/seccomp_rules.h"
#include "runtime/policy/shipped.h"

namespace sbx::policy {
namespace {

Result<Policy> make_policy(const ShippedProfile& shipped) {
  Policy policy;
  policy.profile = shipped.name;
  policy.description = shipped.description;
  for (const auto& [name, text] : shipped.limits) SBX_TRY(set_limit(policy.limits, name, text));
  policy.seccomp.digest = shipped.digest;
  policy.seccomp.bpf.assign(shipped.bpf.begin(), shipped.bpf.end());
  policy.seccomp.audit_arch = shipped.audit_arch;
  policy.seccomp.loosened.assign(shipped.loosened.begin(), shipped.loosened.end());
  policy.seccomp.opened.assign(shipped.opened.begin(), shipped.opened.end());
  std::copy(shipped.actions.begin(), shipped.actions.end(), policy.seccomp.actions.begin());
  return policy;
}

bool is_path(std::string_view name_or_path) {
  return name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".toml");
}

Result<std::string> read_file(const std::string& path) {
  auto text = sys::read_file(path, kMaxTomlBytes);
  if (text) return text;
  // What the caller typed: a missing or unreadable file is his to correct.
  Error error = std::move(text).error().with_context("profile " + path);
  error.code = ErrorCode::kInvalid;
  return error;
}

Result<const ShippedProfile*> find_shipped(std::string_view name) {
  for (const ShippedProfile& profile : shipped_profile_table()) {
    if (profile.name == name) return &profile;
  }
  return invalid(
      fmt::format("no profile '{}': there are {}", name, fmt::join(shipped_profiles(), ", ")),
      "give one of these names, or the path of a profile file");
}

}  // namespace

std::vector<std::string> shipped_profiles() {
  std::vector<std::string> names;
  for (const ShippedProfile& profile : shipped_profile_table()) names.emplace_back(profile.name);
  return names;
}

Result<Policy> load_policy(std::string_view name_or_path) {
  if (is_path(name_or_path)) {
    SBX_ASSIGN(const std::string text, profile_source(name_or_path));
    return parse_policy(text, name_or_path);
  }
  SBX_ASSIGN(const ShippedProfile* const shipped, find_shipped(name_or_path));
  return make_policy(*shipped);
}

Result<std::string> profile_source(std::string_view name_or_path) {
  if (is_path(name_or_path)) return read_file(std::string(name_or_path));
  SBX_ASSIGN(const ShippedProfile* const shipped, find_shipped(name_or_path));
  return std::string(shipped->text);
}

Result<Policy> parse_policy(std::string_view text, std::string_view origin) {
  const auto seccomp = shipped_seccomp_text();
  return parse_profile(text, origin, {seccomp.begin(), seccomp.end()}, kNativeArch);
}

// SECURITY: one denied use of a call that is filtered by its arguments is no reason to open all of
// its uses (ioctl: typing into the terminal), and what the policy does not know is not judged.
std::string risk_of_opening(std::string_view syscall) {
  const auto seccomp = shipped_seccomp_text();
  const auto rules = parse_rules({seccomp.begin(), seccomp.end()});
  if (!rules) return "the policy cannot be read";  // a test parses it: only to be safe
  const auto rule = rules->calls.find(syscall);
  if (rule == rules->calls.end()) return "the policy does not know it";
  switch (rule->second.tier) {
    case Tier::kFiltered:
      return "what it may do depends on its arguments, and a profile would allow all of it";
    case Tier::kHostile:
      return "it could attack the sandbox";
    case Tier::kQuiet:
      return "programs do without it";
    case Tier::kAllow:
    case Tier::kDeny:
      break;
  }
  return rule->second.risk;
}

}  // namespace sbx::policy
