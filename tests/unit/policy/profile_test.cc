#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "runtime/policy/policy.h"
#include "runtime/policy/seccomp_rules.h"
#include "tests/unit/policy/policy_files.h"

namespace sbx::policy {
namespace {

using test::error_of;
using ::testing::HasSubstr;

constexpr char kHead[] = "name = \"mine\"\ndescription = \"x\"\n";

std::string parse_error(const std::string& body) {
  return error_of(parse_policy(kHead + body, "p.toml"));
}

TEST(Profile, WithoutLimitsHasTheDefaults) {
  const auto policy = parse_policy(kHead, "p.toml");
  ASSERT_TRUE(policy) << error_of(policy);
  EXPECT_EQ(policy->profile, "mine");
  EXPECT_EQ(policy->description, "x");
  EXPECT_EQ(policy->limits, Limits{});
  EXPECT_EQ(policy->allow_missing, 0U);
  EXPECT_EQ(policy->seccomp.digest, load_policy("default")->seccomp.digest);
}

TEST(Profile, TakesEveryLimitByItsContractName) {
  const auto policy = parse_policy(std::string(kHead) +
                                       "[limits]\nmemory = \"1g\"\nwork = 1048576\ncpus = 2\n"
                                       "wall_seconds = 0.5\ncpu_seconds = \"none\"\npids = 7\n"
                                       "output_kills = true\nnetwork = \"host\"\n",
                                   "p.toml");
  ASSERT_TRUE(policy) << error_of(policy);
  EXPECT_EQ(policy->limits.memory, 1024 * kMiB);
  EXPECT_EQ(policy->limits.work, kMiB);
  EXPECT_EQ(policy->limits.cpus_milli, 2'000U);
  EXPECT_EQ(policy->limits.wall_seconds, std::chrono::milliseconds{500});
  EXPECT_EQ(policy->limits.pids, 7U);
  EXPECT_TRUE(policy->limits.output_kills);
  EXPECT_EQ(policy->limits.network, NetworkMode::kHost);
}

TEST(Profile, UnknownKeysAreErrorsAtEveryLevel) {
  EXPECT_EQ(parse_error("limit = 1\n"),
            "p.toml:3: key 'limit': unknown key; known here: name, description, limits, seccomp");
  EXPECT_EQ(parse_error("[limits]\n\nmemroy = 1\n"),
            "p.toml:5: key 'limits.memroy': unknown key: not a limit");
  EXPECT_EQ(parse_error("[seccomp]\nkill = []\n"),
            "p.toml:4: key 'seccomp.kill': unknown key; known here: allow, deny, hostile");
  EXPECT_THAT(parse_error("[layers]\nallow_missing = [\"cgroup\"]\n"),
              HasSubstr("p.toml:3: key 'layers': unknown key"));
}

TEST(Profile, WrongTypesAreErrorsWithTheKey) {
  EXPECT_EQ(parse_error("limits = 1\n"), "p.toml:3: key 'limits': must be a table, not an integer");
  EXPECT_EQ(parse_error("[limits]\npids = \"64\"\n"),
            "p.toml:4: key 'limits.pids': must be an integer");
  EXPECT_EQ(parse_error("[limits]\nmemory = 1.5\n"),
            "p.toml:4: key 'limits.memory': must be an integer or a string like \"64M\"");
  EXPECT_EQ(parse_error("[limits]\nwall_seconds = \"30\"\n"),
            "p.toml:4: key 'limits.wall_seconds': must be a number");
  EXPECT_EQ(parse_error("[limits]\ncpus = true\n"),
            "p.toml:4: key 'limits.cpus': must be a number");
  EXPECT_EQ(parse_error("[limits]\noutput_kills = 1\n"),
            "p.toml:4: key 'limits.output_kills': must be true or false");
  EXPECT_EQ(parse_error("[limits]\nnetwork = false\n"),
            "p.toml:4: key 'limits.network': must be a string");
  EXPECT_EQ(parse_error("[limits]\nmemory = 2024-01-01\n"),
            "p.toml:4: key 'limits.memory': must be an integer or a string like \"64M\"");
}

TEST(Profile, ValuesOutOfRangeAreErrorsWithTheKey) {
  EXPECT_EQ(parse_error("[limits]\npids = 0\n"),
            "p.toml:4: key 'limits.pids': pids: 0 is out of range: 1 to 4194304");
  EXPECT_EQ(parse_error("[limits]\npids = -1\n"),
            "p.toml:4: key 'limits.pids': pids: -1 is out of range: 1 to 4194304");
  EXPECT_EQ(parse_error("[limits]\ncpus = nan\n"),
            "p.toml:4: key 'limits.cpus': cpus: 'nan' is not a number of CPUs");
  EXPECT_EQ(parse_error("[limits]\nwall_seconds = inf\n"),
            "p.toml:4: key 'limits.wall_seconds': wall_seconds: 'inf' is not a number of seconds");
  EXPECT_EQ(
      parse_error("[limits]\nmemory = \"0x10\"\n"),
      "p.toml:4: key 'limits.memory': memory: '0x10' is not a size: bytes, or a number with K, M "
      "or G");
}

TEST(Profile, NeedsANameAndADescription) {
  EXPECT_EQ(error_of(parse_policy("name = \"a\"\n", "p")), "p: key 'description' is missing");
  EXPECT_EQ(error_of(parse_policy("description = \"a\"\n", "p")), "p: key 'name' is missing");
  EXPECT_EQ(error_of(parse_policy("name = \"A b\"\ndescription = \"\"\n", "p")),
            "p:1: key 'name': must be 1 to 64 characters of a-z 0-9 - _");
  EXPECT_EQ(error_of(parse_policy("name = \"a\"\ndescription = \"a\\u001bb\\n\"\n", "p")),
            "p:2: key 'description': must be one line");
}

TEST(Profile, AddsAllowedCalls) {
  const auto policy =
      parse_policy(std::string(kHead) + "[seccomp]\nallow = [\"io_setup\", \"@io_uring\"]\n", "p");
  ASSERT_TRUE(policy) << error_of(policy);
  EXPECT_NE(policy->seccomp.digest, load_policy("default")->seccomp.digest);
  EXPECT_TRUE(policy->seccomp.loosened.empty()) << "nothing hostile among them";
}

// io_uring does other calls' work past the filter, and clone3 has clone's flags: neither is
// hostile.
TEST(Profile, TellsEachCallThatItOpens) {
  const auto policy =
      parse_policy(std::string(kHead) +
                       "[seccomp]\nallow = [\"@io_uring\", \"clone3\", \"ioctl\", \"read\", "
                       "\"ptrace\"]\ndeny = {connect = \"EACCES\", mbind = \"ENOSYS\"}\n"
                       "hostile = [\"kcmp\"]\n",
                   "p");
  ASSERT_TRUE(policy) << error_of(policy);
  EXPECT_THAT(policy->seccomp.opened,
              ::testing::ElementsAre("clone3", "io_uring_enter", "io_uring_register",
                                     "io_uring_setup", "ioctl"));
  EXPECT_THAT(policy->seccomp.loosened, ::testing::ElementsAre("ptrace"));
  EXPECT_EQ(loosening_text(policy->seccomp),
            "no longer hostile: ptrace; opened: clone3, io_uring_enter, io_uring_register, "
            "io_uring_setup, ioctl");
  EXPECT_EQ(loosening_text(load_policy("judge")->seccomp), "");
}

TEST(Profile, TakesCallsAwayWithAnErrno) {
  const auto policy =
      parse_policy(std::string(kHead) + "[seccomp]\ndeny = {connect = \"EACCES\"}\n", "p");
  ASSERT_TRUE(policy) << error_of(policy);
  const auto number = syscall_number("connect", policy->seccomp.audit_arch);
  EXPECT_EQ(policy->seccomp.actions[*number], EACCES);
}

TEST(Profile, LoosensTheHostileTierOnlyByNameAndSaysSo) {
  EXPECT_EQ(parse_error("[seccomp]\nallow = [\"@mount\"]\n"),
            "p.toml:4: key 'seccomp.allow[0]': '@mount' is hostile: name its calls one by one");
  const auto policy =
      parse_policy(std::string(kHead) +
                       "[seccomp]\nallow = [\"ptrace\", \"clone\"]\ndeny = {keyctl = \"ENOSYS\"}\n",
                   "p");
  ASSERT_TRUE(policy) << error_of(policy);
  EXPECT_THAT(policy->seccomp.loosened, ::testing::ElementsAre("clone", "keyctl", "ptrace"));
}

TEST(Profile, MistakesInSeccompNameThePlace) {
  EXPECT_EQ(parse_error("[seccomp]\nallow = [\"read\",\n  \"raed\"]\n"),
            "p.toml:5: key 'seccomp.allow[1]': 'raed' is not a system call of any supported "
            "architecture");
  EXPECT_EQ(parse_error("[seccomp]\nallow = [\"@no\"]\n"),
            "p.toml:4: key 'seccomp.allow[0]': '@no' is not a group");
  EXPECT_EQ(parse_error("[seccomp]\nallow = \"read\"\n"),
            "p.toml:4: key 'seccomp.allow': must be an array, not a string");
  EXPECT_EQ(parse_error("[seccomp]\nallow = [1]\n"),
            "p.toml:4: key 'seccomp.allow[0]': must be a string, not an integer");
  EXPECT_EQ(parse_error("[seccomp]\ndeny = {connect = \"EWHAT\"}\n"),
            "p.toml:4: key 'seccomp.deny.connect': 'EWHAT' is not an errno");
  EXPECT_EQ(parse_error("[seccomp]\ndeny = {connect = \"SUCCESS\"}\n"),
            "p.toml:4: key 'seccomp.deny.connect': 'SUCCESS' is not an errno");
  EXPECT_EQ(parse_error("[seccomp]\ndeny = {execve = \"EPERM\"}\n"),
            "p.toml:4: key 'seccomp.deny.execve': no program runs without this call");
  EXPECT_EQ(parse_error("[seccomp]\nhostile = [\"read\"]\n"),
            "p.toml:4: key 'seccomp.hostile[0]': 'read' is allowed by default: use deny");
  EXPECT_EQ(parse_error("[seccomp]\nallow = [\"kcmp\"]\nhostile = [\"kcmp\"]\n"),
            "p.toml:5: key 'seccomp.hostile[0]': 'kcmp' is listed twice");
  EXPECT_EQ(parse_error("[seccomp]\nallow = [\"kcmp\"]\ndeny = {kcmp = \"EPERM\"}\n"),
            "p.toml:5: key 'seccomp.deny.kcmp': 'kcmp' is listed twice");
}

TEST(LoadPolicy, KnowsTheShippedProfiles) {
  EXPECT_THAT(shipped_profiles(), ::testing::UnorderedElementsAre("default", "judge", "large"));
  for (const std::string& name : shipped_profiles()) {
    const auto policy = load_policy(name);
    ASSERT_TRUE(policy) << error_of(policy);
    EXPECT_EQ(policy->profile, name);
    EXPECT_FALSE(policy->seccomp.bpf.empty());
  }
  EXPECT_EQ(load_policy("default")->limits, Limits{});
}

TEST(LoadPolicy, NamesWhatExistsWhenAskedForSomethingElse) {
  const auto none = load_policy("defualt");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(error_of(none), "no profile 'defualt': there are default, judge, large");
  EXPECT_FALSE(load_policy(""));
}

TEST(LoadPolicy, ReadsAFileWhenGivenAPath) {
  const std::string path =
      ::testing::TempDir() + "sbx-profile-" + std::to_string(::getpid()) + ".toml";
  std::ofstream(path) << kHead << "[limits]\npids = 3\n";
  const auto policy = load_policy(path);
  EXPECT_EQ(::unlink(path.c_str()), 0);
  ASSERT_TRUE(policy) << error_of(policy);
  EXPECT_EQ(policy->limits.pids, 3U);
  const auto gone = load_policy(path);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(error_of(gone), HasSubstr(path));
  EXPECT_THAT(error_of(load_policy("default.toml")), HasSubstr("default.toml"));
}

}  // namespace
}  // namespace sbx::policy
