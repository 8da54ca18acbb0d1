#include "runtime/base/command_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sbx {
namespace {

using ::testing::ElementsAre;

constexpr CommandFlag kFlags[] = {{"--check"}, {"--print"}, {"--help", true}, {"--version", true}};

struct Taken {
  std::string flag;
  std::vector<std::string> plain;
  std::string file;
  std::string place;
  std::string mistake;
};

Taken take(const std::vector<std::string>& words) {
  Taken taken;
  const CommandOption options[] = {{"--file", &taken.file}, {"--place", &taken.place, true}};
  const auto parts = take_apart(words, kFlags, options, "see the help");
  if (parts) {
    taken.flag = parts->flag;
    taken.plain = parts->plain;
  } else {
    taken.mistake = parts.error().detail;
  }
  return taken;
}

TEST(CommandWords, AreFlagsOptionsAndPlainWords) {
  const Taken taken = take({"verb", "--file", "-x", "--place=/a=b", "--check", "more"});
  EXPECT_EQ(taken.mistake, "");
  EXPECT_EQ(taken.flag, "--check");
  EXPECT_EQ(taken.file, "-x");
  EXPECT_EQ(taken.place, "/a=b");
  EXPECT_THAT(taken.plain, ElementsAre("verb", "more"));
  EXPECT_EQ(take({}).flag, "");
}

TEST(CommandWords, WhatOnlyTellsGoesBeforeEverythingElse) {
  EXPECT_EQ(take({"--check", "--help"}).flag, "--help");
  EXPECT_EQ(take({"--help", "--check", "--print"}).flag, "--help");
  EXPECT_EQ(take({"--version", "--help"}).flag, "--version");
  EXPECT_EQ(take({"--check", "--check"}).flag, "--check");
}

TEST(CommandWords, MistakesAreNamed) {
  EXPECT_EQ(take({"--nothing=1"}).mistake, "unknown option --nothing");
  EXPECT_EQ(take({"-"}).mistake, "unknown option -");
  EXPECT_EQ(take({"--check=yes"}).mistake, "unknown option --check");
  EXPECT_EQ(take({"--file"}).mistake, "--file needs a value");
  EXPECT_EQ(take({"--file="}).mistake, "--file needs a value");
  EXPECT_EQ(take({"--file", "a", "--file=a"}).mistake, "--file is given twice");
  EXPECT_EQ(take({"--place", "here"}).mistake, "--place here is not an absolute path");
  EXPECT_EQ(take({"--check", "--print"}).mistake, "--check and --print are two things to do");
}

}  // namespace
}  // namespace sbx
