#include "runtime/daemon/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sbx::daemon {
namespace {

using ::testing::HasSubstr;

Arguments parse(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  EXPECT_TRUE(arguments) << (arguments ? "" : arguments.error().detail);
  return arguments ? *arguments : Arguments{};
}

TEST(SbxdArguments, NothingMeansToServe) {
  EXPECT_EQ(parse({}).verb, Verb::kServe);
}

TEST(SbxdArguments, PathsComeAsAWordOrBehindAnEqualsSign) {
  const Arguments arguments =
      parse({"--socket", "/s", "--state-dir=/d", "--config", "relative.toml"});
  EXPECT_EQ(arguments.socket, "/s");
  EXPECT_EQ(arguments.state_dir, "/d");
  EXPECT_EQ(arguments.config, "relative.toml");
}

TEST(SbxdArguments, VerbsAreTheirOwnWords) {
  EXPECT_EQ(parse({"--check-config", "--config", "x"}).verb, Verb::kCheckConfig);
  EXPECT_EQ(parse({"--print-config"}).verb, Verb::kPrintConfig);
  EXPECT_EQ(parse({"--version"}).verb, Verb::kVersion);
  EXPECT_EQ(parse({"-h"}).verb, Verb::kHelp);
  EXPECT_EQ(parse({"audit", "verify"}).verb, Verb::kAuditVerify);
  EXPECT_EQ(parse({"audit", "verify", "/f"}).audit_file, "/f");
}

TEST(SbxdArguments, WhatDoesNotExistIsRefusedWithWhatDoes) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--port", "80"},
                                                {"serve"},
                                                {"audit"},
                                                {"audit", "show"},
                                                {"audit", "verify", "a", "b"},
                                                {"--socket"},
                                                {"--socket", ""},
                                                {"--socket", "relative"},
                                                {"--state-dir=x"},
                                                {"--socket", "/a", "--socket", "/b"},
                                                {"--socket=/a", "--socket=/a"},
                                                {"--config", "a", "--config=b"},
                                                {"--check-config", "--print-config"},
                                                {"--check-config", "audit", "verify"},
                                                {"serve", "--help"},
                                                {"-"}}) {
    const auto arguments = parse_arguments(words);
    ASSERT_FALSE(arguments) << words[0];
    EXPECT_EQ(arguments.error().code, ErrorCode::kInvalid) << words[0];
  }
}

TEST(SbxdArguments, HelpAndVersionGoBeforeWhatElseIsToBeDone) {
  EXPECT_EQ(parse({"audit", "verify", "--help"}).verb, Verb::kAuditHelp);
  EXPECT_EQ(parse({"audit", "--help"}).verb, Verb::kAuditHelp);
  EXPECT_EQ(parse({"-h", "audit"}).verb, Verb::kAuditHelp);
  EXPECT_EQ(parse({"audit", "verify", "--version"}).verb, Verb::kVersion);
  EXPECT_EQ(parse({"--check-config", "--version"}).verb, Verb::kVersion);
  EXPECT_EQ(parse({"--help", "--print-config"}).verb, Verb::kHelp);
  EXPECT_EQ(parse({"--version", "--help"}).verb, Verb::kVersion) << "the first of the two";
  EXPECT_THAT(audit_help_text(), HasSubstr("audit verify"));
}

TEST(SbxdArguments, TheHelpNamesEveryOption) {
  const std::string help = help_text();
  for (const char* option : {"--socket", "--state-dir", "--config", "--check-config",
                             "--print-config", "--version", "--help", "audit verify"}) {
    EXPECT_THAT(help, HasSubstr(option));
  }
}

}  // namespace
}  // namespace sbx::daemon
