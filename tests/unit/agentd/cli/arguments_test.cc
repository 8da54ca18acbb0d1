#include "agentd/cli/arguments.h"

#include <gtest/gtest.h>

namespace agentd::cli {
namespace {

Arguments good(const std::vector<std::string>& words) {
  auto arguments = parse_arguments(words);
  EXPECT_TRUE(arguments) << to_string(arguments.error());
  return arguments ? *arguments : Arguments{};
}

std::string mistake(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  EXPECT_FALSE(arguments);
  if (arguments) return {};
  EXPECT_FALSE(arguments.error().fix.empty());
  return arguments.error().detail;
}

TEST(AgentctlArguments, AskTakesTextFilesAndWhatToDoWithTheResult) {
  const Arguments plain = good({"ask", "a question"});
  EXPECT_EQ(plain.verb, Verb::kAsk);
  EXPECT_EQ(plain.text, "a question");
  EXPECT_FALSE(plain.javascript);
  EXPECT_FALSE(plain.json);
  EXPECT_EQ(plain.image, "auto");
  const Arguments all = good({"--socket", "/s", "ask", "q", "--file", "a.csv", "--file=-odd",
                              "--js", "--json", "--save", "d", "--image", "sixel"});
  EXPECT_EQ(all.socket, "/s");
  EXPECT_EQ(all.files, (std::vector<std::string>{"a.csv", "-odd"}));
  EXPECT_TRUE(all.javascript);
  EXPECT_TRUE(all.json);
  EXPECT_EQ(all.save, "d");
  EXPECT_EQ(all.image, "sixel");
  EXPECT_EQ(good({"ask", "q", "--socket", "/after"}).socket, "/after");
}

TEST(AgentctlArguments, TextThatLooksLikeAnOptionFollowsTwoDashes) {
  EXPECT_EQ(good({"ask", "--", "-5 + 3"}).text, "-5 + 3");
}

TEST(AgentctlArguments, TheOtherVerbsTakeWhatTheyNeed) {
  EXPECT_EQ(good({"show", "rq_1", "--json"}).text, "rq_1");
  EXPECT_EQ(good({"show", "rq_1", "--save", "d"}).save, "d");
  EXPECT_EQ(good({"cancel", "rq_1"}).verb, Verb::kCancel);
  EXPECT_EQ(good({"history", "--limit", "200"}).limit, 200);
  EXPECT_EQ(good({"history"}).limit, 20);
  EXPECT_EQ(good({"doctor"}).verb, Verb::kDoctor);
  EXPECT_EQ(good({"--version"}).verb, Verb::kVersion);
}

TEST(AgentctlArguments, HelpWinsOverEverythingElse) {
  EXPECT_EQ(good({}).verb, Verb::kHelp);
  EXPECT_EQ(good({"-h"}).verb, Verb::kHelp);
  EXPECT_EQ(good({"ask", "--nonsense", "--help"}).verb, Verb::kHelp);
}

TEST(AgentctlArguments, HelpIsOfTheVerbThatWasTyped) {
  EXPECT_EQ(good({"--help"}).about, Verb::kHelp);
  EXPECT_EQ(good({"ask", "--help"}).about, Verb::kAsk);
  EXPECT_EQ(good({"--help", "doctor"}).about, Verb::kDoctor);
  EXPECT_EQ(good({"--socket", "show", "history", "-h"}).about, Verb::kHistory);
  EXPECT_EQ(good({"--help", "--socket"}).about, Verb::kHelp);
}

TEST(AgentctlArguments, WhatDoesNotExistIsAMistake) {
  EXPECT_NE(mistake({"asks", "q"}), "");
  EXPECT_NE(mistake({"ask"}), "");
  EXPECT_NE(mistake({"ask", "two", "texts"}), "");
  EXPECT_NE(mistake({"ask", "q", "--file"}), "");
  EXPECT_NE(mistake({"ask", "q", "--image", "ascii"}), "");
  EXPECT_NE(mistake({"ask", "q", "--limit", "3"}), "");
  EXPECT_NE(mistake({"show"}), "");
  EXPECT_NE(mistake({"show", "rq_1", "--js"}), "");
  EXPECT_NE(mistake({"cancel"}), "");
  EXPECT_NE(mistake({"cancel", "a", "b"}), "");
  EXPECT_NE(mistake({"doctor", "now"}), "");
  EXPECT_NE(mistake({"show", "a", "history"}), "");
  EXPECT_EQ(mistake({"--socket", "/s"}), "no verb was given");
  for (const char* limit : {"0", "201", "-1", "many", "1.5", ""}) {
    EXPECT_NE(mistake({"history", "--limit", limit}), "") << limit;
  }
}

TEST(AgentctlArguments, AnOptionOfOneValueIsGivenOnce) {
  EXPECT_EQ(mistake({"ask", "q", "--save", "a", "--save", "b"}), "--save is given twice");
  EXPECT_EQ(mistake({"--socket", "/a", "ask", "q", "--socket", "/b"}), "--socket is given twice");
  EXPECT_EQ(mistake({"history", "--limit=5", "--limit=5"}), "--limit is given twice");
  EXPECT_EQ(mistake({"show", "id", "--image", "none", "--image", "auto"}),
            "--image is given twice");
  EXPECT_EQ(good({"ask", "q", "--file", "a", "--file", "a"}).files.size(), 2U);
}

TEST(AgentctlHelp, NamesEveryVerbOptionAndExitCode) {
  const std::string help = help_text();
  for (const char* word :
       {"ask", "show", "history", "cancel", "doctor", "--file", "--js", "--json", "--save",
        "--image", "--limit", "--socket", "--version", "Exit codes: 0", "1 ", "2 ", "3 "}) {
    EXPECT_NE(help.find(word), std::string::npos) << word;
  }
}

TEST(AgentctlHelp, EachVerbHasAPageWithItsOptionsAndExitCodes) {
  const std::vector<std::pair<Verb, std::vector<const char*>>> pages = {
      {Verb::kAsk, {"agentctl ask", "--file", "--js", "--json", "--save", "--image"}},
      {Verb::kShow, {"agentctl show ID", "--json", "--save", "--image"}},
      {Verb::kHistory, {"agentctl history", "--limit", "--json"}},
      {Verb::kCancel, {"agentctl cancel ID"}},
      {Verb::kDoctor, {"agentctl doctor"}}};
  for (const auto& [verb, words] : pages) {
    const std::string page = help_text(verb);
    for (const char* word : words) EXPECT_NE(page.find(word), std::string::npos) << word;
    EXPECT_NE(page.find("--socket"), std::string::npos) << page;
    EXPECT_NE(page.find("Exit codes: 0"), std::string::npos) << page;
  }
}

}  // namespace
}  // namespace agentd::cli
