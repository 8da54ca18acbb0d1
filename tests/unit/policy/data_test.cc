// The files of policy/ themselves, and the constants that sbx-policyc made of them.
#include <gmock/gmock.h>
#include <linux/audit.h>
#include <seccomp.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "runtime/policy/language_file.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/profile.h"
#include "runtime/policy/profile_parts.h"
#include "runtime/policy/shipped.h"
#include "tests/unit/policy/policy_files.h"

namespace sbx::policy {
namespace {

using test::error_of;
using test::policy_files;

std::vector<SeccompSource> sources_of(const test::PolicyFiles& files) {
  return {files.begin(), files.end()};
}

TEST(PolicyData, EveryProfileLoadsForEveryArchitecture) {
  const auto seccomp = policy_files("seccomp");
  for (const auto& [file, text] : policy_files("profiles")) {
    for (const std::uint32_t arch : {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64}) {
      const auto policy = parse_profile(text, file, sources_of(seccomp), arch);
      ASSERT_TRUE(policy) << error_of(policy);
      EXPECT_EQ(policy->profile + ".toml", file);
      EXPECT_EQ(policy->seccomp.audit_arch, arch);
    }
  }
}

TEST(PolicyData, TheShippedConstantsAreTheFiles) {
  const auto seccomp = policy_files("seccomp");
  const auto files = policy_files("profiles");
  ASSERT_EQ(shipped_profiles().size(), files.size());
  for (const auto& [file, text] : files) {
    const auto shipped = load_policy(file.substr(0, file.find('.')));
    ASSERT_TRUE(shipped) << error_of(shipped);
    const auto parsed = parse_profile(text, file, sources_of(seccomp), shipped->seccomp.audit_arch);
    ASSERT_TRUE(parsed) << error_of(parsed);
    EXPECT_EQ(shipped->profile, parsed->profile);
    EXPECT_EQ(shipped->description, parsed->description);
    EXPECT_EQ(shipped->limits, parsed->limits);
    EXPECT_EQ(shipped->seccomp.digest, parsed->seccomp.digest);
    EXPECT_EQ(shipped->seccomp.bpf, parsed->seccomp.bpf);
    EXPECT_EQ(shipped->seccomp.actions, parsed->seccomp.actions);
    EXPECT_EQ(shipped->seccomp.loosened, parsed->seccomp.loosened);
    EXPECT_EQ(shipped->seccomp.opened, parsed->seccomp.opened);
  }
}

TEST(PolicyData, EveryExampleOfTheReadmeLoads) {
  std::ifstream file(std::string(SBX_SOURCE_DIR) + "/policy/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  const std::string opening = "```toml\n";
  int profiles = 0;
  int calls = 0;
  for (std::size_t at = readme.find(opening); at != std::string::npos;
       at = readme.find(opening, at)) {
    at += opening.size();
    const std::string example = readme.substr(at, readme.find("```", at) - at);
    SCOPED_TRACE(example);
    if (example.starts_with("[call.")) {
      ++calls;
      const std::string filtered = "tier = \"filtered\"\n" + example;
      const auto rules = parse_rules({{"README.md", filtered}});
      EXPECT_TRUE(rules) << error_of(rules);
    } else {
      ++profiles;
      const auto policy = parse_policy(example, "README.md");
      EXPECT_TRUE(policy) << error_of(policy);
    }
  }
  EXPECT_GE(profiles, 1);
  EXPECT_GE(calls, 1);
}

TEST(PolicyData, AProfileIsWrittenFromItsPartsAsItWas) {
  const std::string own =
      "name = \"own\"\ndescription = \"a \\\"b\\\" \\\\ \\u001b \u00e9\"\n[limits]\nmemory = "
      "\"1G\"\ncpus = 0.25\n"
      "pids = 64\ncpu_seconds = \"none\"\noutput_kills = true\nnetwork = \"host\"\n"
      "[seccomp]\nallow = [\"kcmp\", \"@aio\"]\n"
      "deny = { connect = \"EACCES\", bind = \"EPERM\" }\nhostile = [\"syslog\"]\n";
  const std::string path = ::testing::TempDir() + "own_profile.toml";
  std::ofstream(path) << own;
  std::vector<std::string> all = shipped_profiles();
  all.push_back(path);
  for (const std::string& name : all) {
    const auto source = profile_source(name);
    ASSERT_TRUE(source) << error_of(source);
    const auto parts = profile_parts(*source);
    ASSERT_TRUE(parts) << error_of(parts);
    const std::string text = profile_text(*parts, "# a comment\n");
    SCOPED_TRACE(text);
    const auto again = parse_policy(text, "again");
    ASSERT_TRUE(again) << error_of(again);
    const auto before = load_policy(name);
    EXPECT_EQ(again->profile, before->profile);
    EXPECT_EQ(again->description, before->description);
    EXPECT_EQ(again->limits, before->limits);
    EXPECT_EQ(again->seccomp.digest, before->seccomp.digest);
    EXPECT_EQ(again->seccomp.opened, before->seccomp.opened);
  }
  EXPECT_THAT(profile_parts(*profile_source("default"))->limits, ::testing::IsEmpty());
  EXPECT_FALSE(profile_source("none-such"));
  EXPECT_FALSE(profile_source("/no/such.toml"));
  EXPECT_FALSE(profile_parts("no TOML"));
  (void)std::remove(path.c_str());
}

TEST(PolicyData, NoShippedProfileLoosensThePolicy) {
  for (const std::string& name : shipped_profiles()) {
    EXPECT_EQ(loosening_text(load_policy(name)->seccomp), "") << name;
    EXPECT_EQ(load_policy(name)->limits.network, NetworkMode::kNone) << name;
  }
}

TEST(PolicyData, TheDefaultProfileSpellsOutTheContract) {
  for (const auto& [file, text] : policy_files("profiles")) {
    if (file != "default.toml") continue;
    const auto root = parse_toml(text, file);
    ASSERT_TRUE(root);
    EXPECT_EQ(root->find("limits")->items.size(), limit_fields().size());
  }
  EXPECT_EQ(load_policy("default")->limits, Limits{});
}

TEST(PolicyData, TheTextForProfileFilesIsTheFiles) {
  const auto files = policy_files("seccomp");
  const auto shipped = shipped_seccomp_text();
  ASSERT_EQ(shipped.size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(shipped[i].first, "seccomp/" + files[i].first);
    EXPECT_EQ(shipped[i].second, files[i].second);
  }
}

TEST(PolicyData, TheLanguagesAreTheFilesInTheirOrder) {
  const auto files = policy_files("languages");
  ASSERT_EQ(languages().size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto parsed = parse_language(files[i].second, files[i].first);
    ASSERT_TRUE(parsed) << error_of(parsed);
    const Language& shipped = languages()[i];
    EXPECT_EQ(shipped.name + ".toml", files[i].first);
    EXPECT_EQ(shipped.name, parsed->name);
    EXPECT_EQ(shipped.aliases, parsed->aliases);
    EXPECT_EQ(shipped.extensions, parsed->extensions);
    EXPECT_EQ(shipped.file, parsed->file);
    EXPECT_EQ(shipped.argv, parsed->argv);
    EXPECT_EQ(shipped.env, parsed->env);
    EXPECT_EQ(shipped.image, parsed->image);
    EXPECT_EQ(shipped.missing_module_pattern, parsed->missing_module_pattern);
    EXPECT_EQ(shipped.syntax_error_pattern, parsed->syntax_error_pattern);
  }
}

// A call that is new to libseccomp must be judged, not left to the default.
TEST(PolicyData, EveryCallThatLibseccompKnowsIsInATier) {
  const RuleSet rules = test::rules_of_profile("default");
  for (const std::uint32_t arch : {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64}) {
    for (int nr = 0; nr < static_cast<int>(kSyscallTableSize); ++nr) {
      const std::unique_ptr<char, decltype(&std::free)> name(
          ::seccomp_syscall_resolve_num_arch(arch, nr), &std::free);
      if (name == nullptr) continue;
      EXPECT_TRUE(rules.calls.contains(name.get())) << name.get();
    }
  }
}

// sbx-init tells of 64 calls at most, 12 of them numbers that the policy does not name, which must
// leave a place for each of the others (runtime/child/loop.cc). What no kernel of today has any
// more is not counted: a program that calls it too may fill the list, and the result says so.
TEST(PolicyData, EveryCallThatIsDeniedByNameHasItsPlaceInTheResult) {
  for (const std::string& name : shipped_profiles()) {
    std::size_t named = 0;
    for (const auto& [call, rule] : test::rules_of_profile(name).calls) {
      const bool is_notified = rule.tier == Tier::kDeny || rule.tier == Tier::kFiltered;
      const bool is_gone = rule.group == "obsolete";
      named += is_notified && !is_gone && rule.answer != kActionHostile ? 1 : 0;
    }
    EXPECT_LE(named, 64U - 12U) << name;
    EXPECT_GT(named, 16U) << name;
  }
}

// --learn offers no other of the default policy's; a new one must be judged.
TEST(PolicyData, FewDeniedCallsAreSafeToOpen) {
  std::vector<std::string> offered;
  for (const auto& [call, rule] : test::rules_of_profile("default").calls) {
    const bool is_notified = rule.tier == Tier::kDeny || rule.tier == Tier::kFiltered;
    if (is_notified && risk_of_opening(call).empty()) offered.push_back(call);
  }
  EXPECT_THAT(offered, ::testing::ElementsAre("name_to_handle_at"));
}

TEST(PolicyData, EveryCallOfAGroupIsInItsTier) {
  const RuleSet rules = test::rules_of_profile("default");
  for (const auto& [group, calls] : rules.groups) {
    EXPECT_FALSE(calls.empty()) << group;
    for (const std::string& call : calls) EXPECT_EQ(rules.calls.at(call).group, group);
  }
}

}  // namespace
}  // namespace sbx::policy
