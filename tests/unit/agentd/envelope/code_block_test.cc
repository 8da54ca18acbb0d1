#include "agentd/envelope/code_block.h"

#include <gtest/gtest.h>

namespace agentd::envelope {
namespace {

std::string code_in(std::string_view reply, Language language = Language::kPython,
                    bool cut = false) {
  const auto extracted = extract_code(reply, language, cut);
  if (const auto* none = std::get_if<NoCode>(&extracted)) return "error: " + none->code;
  return std::get<CodeBlock>(extracted).code;
}

TEST(CodeBlock, IsTakenOutOfProse) {
  EXPECT_EQ(code_in("```python\nprint(1)\n```"), "print(1)\n");
  EXPECT_EQ(code_in("Sure! Here it is:\n\n```python\nprint(1)\n```\nHope that helps.\n"),
            "print(1)\n");
  EXPECT_EQ(code_in("  ```py\n  if x:\n      y()\n  ```"), "if x:\n    y()\n");
  EXPECT_EQ(code_in("~~~Python3 title=\"x\"\na\n~~~"), "a\n");
  EXPECT_EQ(code_in("````python\na\n```\nb\n````"), "a\n```\nb\n") << "a longer fence";
  EXPECT_EQ(code_in("```js\nx()\n```", Language::kJavaScript), "x()\n");
}

TEST(CodeBlock, LineEndsOfOtherSystemsBecomeOurs) {
  EXPECT_EQ(code_in("```python\r\nprint(1)\r\nprint(2)\r\n```\r\n"), "print(1)\nprint(2)\n");
}

TEST(CodeBlock, ExactlyOneIsWanted) {
  EXPECT_EQ(code_in("I cannot do that."), "error: no_code_block");
  EXPECT_EQ(code_in(""), "error: no_code_block");
  EXPECT_EQ(code_in("```python\na\n```\n```python\nb\n```"), "error: several_code_blocks");
  EXPECT_EQ(code_in("```\na\n```\n```\nb\n```"), "error: several_code_blocks");
  EXPECT_EQ(code_in("```python\n\n  \n```"), "error: empty_code_block");
  EXPECT_EQ(code_in("```javascript\na\n```"), "error: wrong_language");
}

TEST(CodeBlock, AFenceInsideALineIsSaidToBeThere) {
  for (const std::string reply :
       {"Here: ```python\nprint(1)\n```", "Here: ```python\nprint(1)\n```\nand more words",
        "1. ```py\nprint(1)\n```\n", "    ```python\nprint(1)\n    ```",
        "Here: ~~~python\na\n~~~"}) {
    const auto extracted = extract_code(reply, Language::kPython, false);
    ASSERT_TRUE(std::holds_alternative<NoCode>(extracted)) << reply;
    EXPECT_EQ(std::get<NoCode>(extracted).code, "no_code_block");
    EXPECT_NE(std::get<NoCode>(extracted).detail.find("the start of a line"), std::string::npos);
  }
  EXPECT_EQ(code_in("No \"x ```python\" here:\n```\na\n```"), "a\n");
  EXPECT_EQ(code_in("Here: ```python\n```python\na\n```"), "a\n");
  EXPECT_EQ(code_in("```\nx = 1 # ```python\n```"), "x = 1 # ```python\n");
}

TEST(CodeBlock, BlocksInOtherLanguagesAreProse) {
  EXPECT_EQ(code_in("```bash\npip install x\n```\n```python\na\n```\n```text\nout\n```"), "a\n");
  EXPECT_EQ(code_in("```\noutput\n```\n```python\na\n```"), "a\n");
  EXPECT_EQ(code_in("```\na\n```\n```json\n{}\n```"), "a\n") << "the one without a language";
}

TEST(CodeBlock, AFenceInsideAStringOfTheProgramDoesNotEndIt) {
  const std::string python = "text = \"\"\"\n```\nfenced\n```\n\"\"\"\nprint(text)\n";
  EXPECT_EQ(code_in("```python\n" + python + "```\nDone."), python);
  const std::string single = "t = '''a\n```\n''' # it's\nu = \"'''\"\n";
  EXPECT_EQ(code_in("```python\n" + single + "```"), single);
  // Backticks cannot stand in a template unescaped; tildes can, and both in a comment.
  const std::string script =
      "const s = `\n~~~\n${f({a: `x`})}\n~~~\n\\`;\n`;\n/*\n~~~\n*/\nlog(s)\n";
  EXPECT_EQ(code_in("~~~js\n" + script + "~~~\n", Language::kJavaScript), script);
  const std::string comment = "/*\n```\n*/\nf('`', \"`\") // `\n";
  EXPECT_EQ(code_in("```js\n" + comment + "```\n", Language::kJavaScript), comment);
}

TEST(CodeBlock, AStringThatNeverEndsFallsBackToTheFirstFence) {
  EXPECT_EQ(code_in("```python\nprint(\"\"\"oops)\n```\nprose\n"), "print(\"\"\"oops)\n");
}

TEST(CodeBlock, WithoutAClosingFenceItRunsUnlessTheReplyWasCut) {
  EXPECT_EQ(code_in("```python\nprint(1)\n"), "print(1)\n");
  EXPECT_EQ(code_in("```python\nprint(1)\n", Language::kPython, true), "error: cut_reply");
  EXPECT_EQ(code_in("Let me think about", Language::kPython, true), "error: cut_reply");
  EXPECT_EQ(code_in("```python\nprint(1)\n```\nand then", Language::kPython, true), "print(1)\n");
  const auto open = extract_code("```python\nprint(1)", Language::kPython, false);
  EXPECT_FALSE(std::get<CodeBlock>(open).closed);
}

TEST(CodeBlock, InlineCodeAndDeepIndentationAreNoFences) {
  EXPECT_EQ(code_in("Use ```x``` like that"), "error: no_code_block");
  EXPECT_EQ(code_in("```not a fence``` here\n```python\na\n```"), "a\n");
  EXPECT_EQ(code_in("    ```python\n    a\n    ```"), "error: no_code_block");
  EXPECT_EQ(code_in("``python\na\n``"), "error: no_code_block");
}

TEST(CodeBlock, WhatAModelThinksAloudIsNoPartOfItsAnswer) {
  const std::string draft = "Maybe\n```python\ndraft\n```\nor `x`, or\n```python\nhalf\n";
  const std::string answer = "\nHere:\n```python\na\n```\n";
  EXPECT_EQ(code_in("<think>\n" + draft + "</think>" + answer), "a\n");
  EXPECT_EQ(code_in(" \r\n<think>" + draft + " so be it.</think>" + answer), "a\n");
  EXPECT_EQ(code_in("<think></think>```python\na\n```"), "a\n");
  EXPECT_EQ(code_in("<think>" + draft + "</think>\nIt is 7."), "error: no_code_block");
  // Some servers' templates hold the opening tag, so that it is not in the reply.
  const std::string closed = "Maybe\n```python\ndraft\n```\nor not.\r\n";
  EXPECT_EQ(code_in(closed + "</think>\r\n" + answer), "a\n");
  EXPECT_EQ(without_thought("<think>7?</think>\nIt is 7."), "\nIt is 7.");
  EXPECT_EQ(without_thought("It is 7."), "It is 7.");
}

TEST(CodeBlock, AThoughtWithoutAnEndIsNotAnswered) {
  const std::string thought = "<think>\n```python\ndraft\n```\n";
  EXPECT_EQ(code_in(thought, Language::kPython, true), "error: cut_reply");
  EXPECT_EQ(code_in(thought), "draft\n") << "a model that forgot its end";
}

TEST(CodeBlock, TagsOfAThoughtWithinAProgramAreItsText) {
  const std::string program = "page = '''\n<think>\n</think>\n'''\nprint(\"</think>\")\n";
  EXPECT_EQ(code_in("Here:\n```python\n" + program + "```\n"), program);
  EXPECT_EQ(code_in("<think>x</think>\n```python\n" + program + "```\n"), program);
}

TEST(CodeBlock, LengthHasALimit) {
  const auto reply = [](std::size_t code_bytes) {
    return "```python\n" + std::string(code_bytes - 1, 'x') + "\n```";
  };
  EXPECT_EQ(code_in(reply(kMaxCodeBytes)).size(), kMaxCodeBytes);
  EXPECT_EQ(code_in(reply(kMaxCodeBytes + 1)), "error: code_too_long");
}

TEST(Languages, HaveTheNamesOfTheRuntime) {
  Language language{};
  EXPECT_TRUE(language_from("python", language));
  for (const char* name : {"javascript", "js", "node"}) {
    EXPECT_TRUE(language_from(name, language));
    EXPECT_EQ(to_string(language), "javascript");
  }
  EXPECT_FALSE(language_from("bash", language));
  EXPECT_FALSE(language_from("", language));
}

}  // namespace
}  // namespace agentd::envelope
