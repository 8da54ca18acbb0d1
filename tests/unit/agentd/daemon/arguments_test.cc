#include "agentd/daemon/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agentd::daemon {
namespace {

Arguments parse(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  EXPECT_TRUE(arguments) << (arguments ? "" : arguments.error().detail);
  return arguments ? *arguments : Arguments{};
}

std::string mistake(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  return arguments ? "none" : arguments.error().detail;
}

TEST(AgentdArguments, NothingMeansToServe) {
  EXPECT_EQ(parse({}).verb, Verb::kServe);
}

TEST(AgentdArguments, OptionsComeAsAWordOrBehindAnEqualsSign) {
  const Arguments arguments = parse({"--socket", "/s", "--sbxd-socket=/b", "--state-dir", "/d",
                                     "--listen=127.0.0.1:1", "--config", "relative.toml"});
  EXPECT_EQ(arguments.socket, "/s");
  EXPECT_EQ(arguments.sbxd_socket, "/b");
  EXPECT_EQ(arguments.state_dir, "/d");
  EXPECT_EQ(arguments.listen, "127.0.0.1:1");
  EXPECT_EQ(arguments.config, "relative.toml");
}

TEST(AgentdArguments, VerbsAreTheirOwnWords) {
  EXPECT_EQ(parse({"--check-config"}).verb, Verb::kCheckConfig);
  EXPECT_EQ(parse({"--print-config"}).verb, Verb::kPrintConfig);
  EXPECT_EQ(parse({"--version"}).verb, Verb::kVersion);
  EXPECT_EQ(parse({"-h"}).verb, Verb::kHelp);
  EXPECT_EQ(parse({"record", "--help"}).verb, Verb::kHelp);
  const Arguments record = parse({"record", "--out", "f"});
  EXPECT_EQ(record.verb, Verb::kRecord);
  EXPECT_EQ(record.out, "f");
}

TEST(AgentdArguments, WhatDoesNotExistIsRefused) {
  EXPECT_EQ(mistake({"--port", "80"}), "unknown option --port");
  EXPECT_EQ(mistake({"serve"}), "unknown word: serve");
  EXPECT_EQ(mistake({"record", "more"}), "unknown word: more");
  EXPECT_EQ(mistake({"record"}), "record needs --out FILE");
  EXPECT_EQ(mistake({"--out", "f"}), "--out is for agentd record");
  EXPECT_EQ(mistake({"--state-dir", "d"}), "--state-dir d is not an absolute path");
  EXPECT_EQ(mistake({"record", "--check-config"}),
            "record is given with an option that does something else");
  EXPECT_EQ(mistake({"--check-config", "--print-config"}),
            "--check-config and --print-config are two things to do");
}

}  // namespace
}  // namespace agentd::daemon
