#include "runtime/policy/seccomp_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "tests/unit/policy/policy_files.h"

namespace sbx::policy {
namespace {

using test::error_of;
using ::testing::HasSubstr;

std::string rules_error(std::string_view text) {
  return error_of(parse_rules({{"s.toml", text}}));
}

TEST(SeccompRules, HaveOneTierPerFile) {
  const auto rules = parse_rules(
      {{"a", "tier = \"allow\"\n[group.io]\nwhy = \"x\"\ncalls = [\"read\", \"write\"]\n"},
       {"d",
        "tier = \"deny\"\n[group.old]\nwhy = \"x\"\nerrno = \"ENOSYS\"\ncalls = [\"ustat\"]\n"},
       {"h", "tier = \"hostile\"\n[group.m]\nwhy = \"x\"\ncalls = [\"mount\"]\n"},
       {"q",
        "tier = \"quiet\"\n[group.s]\nwhy = \"x\"\nerrno = \"SUCCESS\"\ncalls = [\"sync\"]\n"}});
  ASSERT_TRUE(rules) << error_of(rules);
  EXPECT_EQ(rules->calls.at("read").tier, Tier::kAllow);
  EXPECT_EQ(rules->calls.at("ustat").answer, ENOSYS);
  EXPECT_EQ(rules->calls.at("mount").answer, kActionHostile);
  EXPECT_EQ(rules->calls.at("sync").answer, 0);
  EXPECT_EQ(rules->groups.at("io").size(), 2U);
}

TEST(SeccompRules, ReadArgumentTests) {
  const auto rules = parse_rules(
      {{"f",
        "tier = \"filtered\"\n[call.clone]\nwhy = \"x\"\notherwise = \"hostile\"\nallow = [\n"
        "{arg0 = {mask = [\"CLONE_NEWNS\", \"CLONE_NEWPID\"], any = [0]}},\n"
        "{arg1 = [\"TCGETS\", 7], arg2 = {bits = 64, any = [0]}},\n]\n"}});
  ASSERT_TRUE(rules) << error_of(rules);
  const CallRule& clone = rules->calls.at("clone");
  EXPECT_EQ(clone.answer, kActionHostile);
  ASSERT_EQ(clone.cases.size(), 2U);
  EXPECT_EQ(clone.cases[0][0].mask, std::uint64_t{CLONE_NEWNS | CLONE_NEWPID});
  EXPECT_EQ(clone.cases[1][0].mask, 0xffffffffU);
  EXPECT_EQ(clone.cases[1][0].values, (std::vector<std::uint64_t>{TCGETS, 7}));
  EXPECT_EQ(clone.cases[1][1].argument, 2U);
  EXPECT_EQ(clone.cases[1][1].mask, ~std::uint64_t{0});
}

// "Allow ioctl, but not TIOCSTI" must not come out as "allow ioctl".
TEST(SeccompRules, ACallIsNeverBothConditionalAndUnconditional) {
  const auto rules =
      parse_rules({{"a", "tier = \"allow\"\n[group.io]\nwhy = \"x\"\ncalls = [\"ioctl\"]\n"},
                   {"f",
                    "tier = \"filtered\"\n[call.ioctl]\nwhy = \"x\"\notherwise = \"ENOTTY\"\n"
                    "allow = [{arg1 = [\"TCGETS\"]}]\n"}});
  EXPECT_EQ(error_of(rules), "f:2: key 'call.ioctl': 'ioctl' is listed already, in 'io'");
}

TEST(SeccompRules, MistakesNameFileLineAndKey) {
  EXPECT_EQ(rules_error(""), "s.toml: key 'tier' is missing");
  EXPECT_EQ(rules_error("tier = \"nice\""),
            "s.toml:1: key 'tier': must be allow, filtered, quiet, deny or hostile");
  EXPECT_EQ(rules_error("tier = \"allow\"\n[call.read]\n"),
            "s.toml:2: key 'call': unknown key; known here: tier, group");
  EXPECT_EQ(rules_error("tier = \"allow\"\n[group.a]\nwhy = \"x\"\nerrno = \"EPERM\"\n"),
            "s.toml:4: key 'group.a.errno': unknown key; known here: why, calls");
  EXPECT_EQ(rules_error("tier = \"allow\"\n[group.a]\ncalls = []\n"),
            "s.toml:2: key 'group.a': key 'why' is missing");
  EXPECT_EQ(rules_error("tier = \"allow\"\n[group.a]\nwhy = \"x\"\ncalls = [\"raed\"]\n"),
            "s.toml:4: key 'group.a.calls[0]': 'raed' is not a system call of any supported "
            "architecture");
  EXPECT_EQ(rules_error("tier = \"allow\"\n[group.a]\nwhy = \"x\"\ncalls = [\"read\", \"read\"]\n"),
            "s.toml:4: key 'group.a.calls[1]': 'read' is listed already, in 'a'");
  EXPECT_EQ(rules_error("tier = \"deny\"\n[group.a]\nwhy = \"x\"\nerrno = \"EHM\"\ncalls = []\n"),
            "s.toml:4: key 'group.a.errno': 'EHM' is not an errno");
  EXPECT_EQ(
      rules_error("tier = \"deny\"\n[group.a]\nwhy = \"x\"\nerrno = \"SUCCESS\"\ncalls = []\n"),
      "s.toml:4: key 'group.a.errno': 'SUCCESS' is not an errno")
      << "a denied call must fail";
}

std::string filtered_error(const std::string& allow) {
  return rules_error(
      "tier = \"filtered\"\n[call.ioctl]\nwhy = \"x\"\notherwise = \"EPERM\"\nallow = " + allow +
      "\n");
}

TEST(SeccompRules, MistakesInArgumentTestsNameTheKey) {
  const std::string where = "s.toml:5: key 'call.ioctl.allow";
  EXPECT_EQ(filtered_error("[]"), where + "': must have a case");
  EXPECT_EQ(filtered_error("[{}]"), where + "[0]': must test an argument");
  EXPECT_THAT(filtered_error("[{arg6 = [0]}]"), HasSubstr(where + "[0].arg6': unknown key"));
  EXPECT_EQ(filtered_error("[{arg1 = []}]"), where + "[0].arg1': must have a value");
  EXPECT_EQ(filtered_error("[{arg1 = [\"TCGOTS\"]}]"),
            where + "[0].arg1[0]': 'TCGOTS' is neither a number nor a known constant");
  EXPECT_EQ(filtered_error("[{arg1 = [-1]}]"),
            where + "[0].arg1[0]': '-1' is neither a number nor a known constant");
  EXPECT_EQ(filtered_error("[{arg1 = [0x100000000]}]"),
            where + "[0].arg1': has a value outside the mask");
  EXPECT_EQ(filtered_error("[{arg1 = {any = [0]}}]"),
            where + "[0].arg1': needs either 'bits' or 'mask'");
  EXPECT_EQ(filtered_error("[{arg1 = {bits = 32, any = [0]}}]"),
            where + "[0].arg1.bits': must be 64");
  EXPECT_EQ(filtered_error("[{arg1 = {mask = [0], any = [0]}}]"),
            where + "[0].arg1.mask': must not be zero");
  EXPECT_EQ(filtered_error("[{arg1 = {bits = 64}}]"), where + "[0].arg1': key 'any' is missing");
}

TEST(SeccompRules, AnErrnoIsKnownByName) {
  EXPECT_EQ(errno_value("EPERM"), EPERM);
  EXPECT_EQ(errno_value("EAFNOSUPPORT"), EAFNOSUPPORT);
  EXPECT_EQ(errno_value("SUCCESS"), 0);
  EXPECT_EQ(errno_value("eperm"), std::nullopt);
  EXPECT_EQ(errno_value(""), std::nullopt);
}

TEST(SeccompRules, ANameOfAnotherArchitectureIsNoMistake) {
  EXPECT_TRUE(exists_anywhere("open"));
  EXPECT_EQ(syscall_number("open", AUDIT_ARCH_AARCH64), std::nullopt);
  EXPECT_EQ(syscall_number("open", AUDIT_ARCH_X86_64), 2U);
  EXPECT_FALSE(exists_anywhere("opem"));
  EXPECT_FALSE(exists_anywhere(""));
}

}  // namespace
}  // namespace sbx::policy
