// What a profile says beyond the defaults, part by part, to write another one from it (--learn).
// Stage: policy. Values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace sbx::policy {

struct ProfileParts {
  std::string name;
  std::string description;
  std::vector<std::pair<std::string, std::string>> limits{};  // name, value as TOML writes it
  std::vector<std::string> allow{};                           // calls, and groups with their '@'
  std::vector<std::pair<std::string, std::string>> deny{};    // call, errno's name
  std::vector<std::string> hostile{};
};

// Of the text of a profile, which parse_policy has taken. Limits that are as they are by default
// are left out. kInvalid for what is no TOML.
[[nodiscard]] Result<ProfileParts> profile_parts(std::string_view text);

// A profile's text. `comments`: whole lines, put into [seccomp].
[[nodiscard]] std::string profile_text(const ProfileParts& parts, std::string_view comments = {});

}  // namespace sbx::policy
