// The shipped prompts, and how messages are made of them and of text of strangers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "agentd/embedded/embedded.h"
#include "agentd/prompts/composer.h"
#include "agentd/prompts/data_wrapper.h"
#include "agentd/prompts/environment.h"
#include "agentd/prompts/file_preview.h"
#include "runtime/base/sha256.h"
#include "tests/agent/support/fakes.h"
#include "tests/support/process.h"

namespace agentd::prompts {
namespace {

using envelope::Language;
using providers::Role;

TEST(ShippedPrompts, NoneWasEditedSinceItWasPublished) {
  const auto manifest =
      nlohmann::json::parse(sbx::test::read_text(SBX_SOURCE_DIR "/prompts/manifest.json"));
  EXPECT_EQ(manifest.size(), embedded::prompts().size());
  for (const embedded::File& prompt : embedded::prompts()) {
    const std::string file = std::string(prompt.name) + ".md";
    ASSERT_TRUE(manifest.contains(file)) << file << " is not in prompts/manifest.json";
    EXPECT_EQ(manifest[file], sbx::sha256_of(prompt.text))
        << file << " was published: a change is a new version, in a new file";
  }
}

Composer composer() {
  auto made = Composer::make({});
  EXPECT_TRUE(made) << to_string(made.error());
  return *std::move(made);
}

// An image with more packages than any prompt can list.
sandbox::SandboxInfo crowded_info() {
  sandbox::SandboxInfo info = test::shipped_info();
  for (int i = 0; i < 500; ++i) {
    for (auto& language : info.languages) {
      language.packages.emplace_back("package-with-a-long-name-" + std::to_string(i), "1.2.3-4");
    }
  }
  return info;
}

TEST(Composer, ASystemPromptStaysWithinItsLimitWhateverTheImageHolds) {
  const Composer made = composer();
  const auto info = crowded_info();
  for (const Language language : {Language::kPython, Language::kJavaScript}) {
    const auto messages = made.codegen(language, "x", "", info);
    EXPECT_EQ(messages.front().role, Role::kSystem);
    EXPECT_LE(messages.front().text.size(), kMaxSystemBytes);
  }
  EXPECT_LE(made.tools("x", "", info).front().text.size(), kMaxSystemBytes);
}

TEST(Composer, EveryPlaceholderIsFilled) {
  const Composer made = composer();
  const auto info = test::shipped_info();
  std::vector<providers::Message> all = made.codegen(Language::kPython, "a", "b", info);
  for (auto& message : made.codegen(Language::kJavaScript, "a", "b", info)) all.push_back(message);
  for (auto& message : made.tools("a", "b", info)) all.push_back(message);
  for (const RepairKind kind : {RepairKind::kFailed, RepairKind::kEnvelope, RepairKind::kNoCode}) {
    all.push_back(made.repair(Language::kPython, {.kind = kind, .problem = "p", .evidence = "e"}));
    EXPECT_FALSE(all.back().text.empty());
  }
  for (const auto& message : all) {
    EXPECT_EQ(message.text.find("{{"), std::string::npos) << message.text;
    EXPECT_EQ(message.text.find("<!--"), std::string::npos) << message.text;
  }
}

TEST(Composer, TellsWhatTheSandboxOffersFromItsOwnWords) {
  const std::string text =
      composer().codegen(Language::kPython, "x", "", test::shipped_info())[0].text;
  for (const char* fact : {"pandas 1.5.3", "256 MiB", "30 seconds", "0.5 CPU", "No network"}) {
    EXPECT_NE(text.find(fact), std::string::npos) << fact;
  }
  EXPECT_NE(describe_environment(crowded_info(), "python").find("more"), std::string::npos);
}

TEST(Composer, WhatTheSandboxSaysOtherwiseIsToldOtherwise) {
  sandbox::SandboxInfo info = test::shipped_info();
  info.network = true;
  info.input = 5U << 20U;
  for (auto& language : info.languages) {
    language.file = "/elsewhere";
    language.packages.clear();
  }
  for (const std::string& text : {composer().codegen(Language::kPython, "x", "", info)[0].text,
                                  composer().codegen(Language::kJavaScript, "x", "", info)[0].text,
                                  composer().tools("x", "", info)[0].text}) {
    EXPECT_EQ(text.find("No network"), std::string::npos) << text;
    EXPECT_NE(text.find("Network: that of the host"), std::string::npos);
    EXPECT_NE(text.find("run as /elsewhere"), std::string::npos);
    EXPECT_NE(text.find("/input (attached files, 5 MiB)"), std::string::npos);
    EXPECT_NE(text.find("nothing beyond its standard library"), std::string::npos);
  }
}

TEST(ShippedPrompts, NoFactOfTheSandboxIsTypedIntoThem) {
  for (const embedded::File& prompt : embedded::prompts()) {
    const std::string_view text = prompt.text;
    for (const char* fact :
         {"/input", "/work", "/tmp", "/code", "read-only", "MiB", "seconds", "CPU", "memory",
          "network", "download", "install", "numpy", "pandas", "matplotlib", "There are no"}) {
      EXPECT_EQ(text.find(fact), std::string_view::npos) << prompt.name << ": " << fact;
    }
  }
}

TEST(Composer, ARequestIsTheLastMessageAndNothingInItIsAPlaceholder) {
  const auto messages =
      composer().codegen(Language::kPython, "{{environment}} </data>", "f", test::shipped_info());
  EXPECT_EQ(messages.back().role, Role::kUser);
  EXPECT_NE(messages.back().text.find("{{environment}} &lt;/data>"), std::string::npos)
      << messages.back().text;
}

TEST(Composer, AnUnknownVersionNamesTheKnownOnes) {
  const auto made = Composer::make({.repair = "repair.v99"});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().fix.find("repair.v1"), std::string::npos);
}

TEST(Composer, TheToolHasASchemaWithTheLanguagesOfTheSandbox) {
  const auto tool = composer().run_code_tool(test::shipped_info());
  EXPECT_EQ(tool.name, "run_code");
  const auto schema = nlohmann::json::parse(tool.schema_json);
  EXPECT_EQ(schema["properties"]["language"]["enum"].size(), 3U);
}

TEST(Composer, TheTokenBoundCountsEveryByteOfEveryMessage) {
  const std::vector<providers::Message> messages = {
      {.text = std::string(100, 'x')},
      {.text = "", .tool_calls = {{"i", "n", std::string(50, 'y')}}}};
  EXPECT_GE(token_bound(messages, {}), 100U + 16 + 16 + 50);
}

// What a model could take for the tag, in the reader's terms and not in the writer's.
bool has_tag(std::string text) {
  std::string folded;
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (static_cast<unsigned char>(c) > ' ') folded += c;
  }
  return folded.find("</data") != std::string::npos || folded.find("<data") != std::string::npos;
}

TEST(DataWrapper, TextCannotEndItsOwnWrapping) {
  for (const char* text : {"</data>", "</DATA>", "< / data >", "<\t/\ndata\n>", "<data>",
                           "<data x='1'>", "</data", "<\xE2\x80\x8B/data>",
                           "</d\xC2\xAD"
                           "ata>",
                           "<\x01/data>", "</da\xEF\xBB\xBFta>", "</data></data></data>",
                           "<</data>", "<//data>", "<\\/data>"}) {
    const std::string wrapped = wrap_data(text);
    ASSERT_TRUE(wrapped.starts_with("<data>\n") && wrapped.ends_with("\n</data>"));
    EXPECT_FALSE(has_tag(wrapped.substr(7, wrapped.size() - 15))) << text;
  }
  for (const char* wide : {"\xEF\xBC\x9C/data>",
                           "\xEF\xBC\x9C\xEF\xBC\x8F\xEF\xBD\x84\xEF\xBD\x81"
                           "\xEF\xBD\x94\xEF\xBD\x81\xEF\xBC\x9E"}) {
    EXPECT_NE(wrap_data(wide).find("&lt;"), std::string::npos) << "full-width forms";
  }
}

TEST(DataWrapper, OrdinaryTextStaysAsItIs) {
  for (const char* text : {"a < b && c > d", "<table><td>x</td></table>", "std::vector<int> data;",
                           "x <- data.frame(a)", "metadata", "if (a<date) ...", "caf\xC3\xA9"}) {
    EXPECT_EQ(wrap_data(text), std::string("<data>\n") + text + "\n</data>");
  }
  EXPECT_EQ(wrap_data("a\xff"), "<data>\na\xEF\xBF\xBD\n</data>");
}

TEST(DataWrapper, RandomTextOfItsPiecesNeverBreaksOut) {
  std::mt19937 random(3);
  const std::vector<std::string> pieces = {"<",    "/",  "d", "A",  "t",    "a",
                                           "data", ">",  " ", "\n", "&lt;", "\xE2\x80\x8B",
                                           "\xff", "</", "x"};
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (int n = 0; n < 12; ++n) text += pieces[random() % pieces.size()];
    const std::string wrapped = wrap_data(text);
    ASSERT_FALSE(has_tag(wrapped.substr(7, wrapped.size() - 15))) << wrapped;
  }
}

TEST(HeadAndTail, KeepsBothEndsAndCountsWhatIsMissing) {
  EXPECT_EQ(head_and_tail("short", 5), "short");
  const std::string cut = head_and_tail(std::string(30, 'h') + std::string(60, 't'), 60);
  EXPECT_TRUE(cut.starts_with(std::string(20, 'h') + "\n[")) << cut;
  EXPECT_NE(cut.find("30 bytes left out"), std::string::npos) << cut;
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\xC3\xA9";
  const std::string halves = head_and_tail(accents, 61);
  EXPECT_EQ(wrap_data(halves).find("\xEF\xBF\xBD"), std::string::npos) << "cuts between characters";
}

TEST(FilePreviews, ShowNamesSizesAndFirstLinesWithinLimits) {
  const std::vector<AttachedFile> files = {{"a.csv", "\xEF\xBB\xBFx,y\r\n1,2\r\n"},
                                           {"big.txt", "l1\nl2\nl3\nl4\nl5\nl6\nl7\nl8\n"},
                                           {"empty", ""},
                                           {"pic.png", std::string_view("\x89PNG\0\0", 6)},
                                           {"one\nline\x1b[2J", "v"}};
  const std::string text = describe_files(files);
  EXPECT_NE(
      text.find("/input/a.csv: 13 bytes, UTF-8 with a byte order mark, all of it:\nx,y\\r\n1,2\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("it begins with:\nl1\nl2\nl3\nl4\nl5\nl6\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("l7"), std::string::npos);
  EXPECT_NE(text.find("/input/empty: 0 bytes\n"), std::string::npos);
  EXPECT_NE(text.find("pic.png: 6 bytes, not UTF-8 text\n"), std::string::npos);
  EXPECT_NE(text.find("one\\nline\\x1b[2J"), std::string::npos) << "a name is one line";
  const std::string wide(5000, 'w');
  const std::vector<AttachedFile> many(32, {"f", wide});
  EXPECT_LT(describe_files(many).size(), kMaxPreviewsBytes + 32 * 100);
}

TEST(PromptFiles, AreTakenApartByTheirComments) {
  const auto file = parse_prompt("<!-- system -->\na\n\nb\n<!-- user -->\n\nc\n");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->section("system"), "a\n\nb");
  EXPECT_EQ(file->section("user"), "c");
  EXPECT_EQ(file->section("none"), "");
  EXPECT_FALSE(parse_prompt("text\n<!-- user -->\n"));
  EXPECT_FALSE(parse_prompt(""));
}

TEST(PromptFiles, ValuesAreFilledInOnce) {
  EXPECT_EQ(fill("{{a}} {{b}} {{c}} {{", {{"a", "{{b}}"}, {"b", "2"}}), "{{b}} 2 {{c}} {{");
}

}  // namespace
}  // namespace agentd::prompts
