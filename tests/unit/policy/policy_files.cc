#include "tests/unit/policy/policy_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sbx::test {

PolicyFiles policy_files(const std::string& folder) {
  PolicyFiles files;
  const std::filesystem::path root = std::filesystem::path(SBX_SOURCE_DIR) / "policy" / folder;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    files.emplace_back(entry.path().filename().string(), text.str());
  }
  std::sort(files.begin(), files.end());
  EXPECT_FALSE(files.empty()) << root;
  return files;
}

policy::RuleSet rules_of_profile(const std::string& name) {
  const PolicyFiles seccomp = policy_files("seccomp");
  auto rules = policy::parse_rules({seccomp.begin(), seccomp.end()});
  EXPECT_TRUE(rules) << error_of(rules);
  for (const auto& [file, text] : policy_files("profiles")) {
    if (file != name + ".toml") continue;
    const auto profile = parse_toml(text, file);
    EXPECT_TRUE(profile) << error_of(profile);
    const TomlValue* overlay = profile->find("seccomp");
    if (overlay == nullptr) break;
    const auto loosened = policy::apply_profile(*rules, *overlay, file);
    EXPECT_TRUE(loosened) << error_of(loosened);
  }
  return *std::move(rules);
}

}  // namespace sbx::test
