#include "runtime/base/escape.h"

#include <gtest/gtest.h>

namespace sbx {
namespace {

TEST(EscapeForTerminal, LeavesNothingThatATerminalActsOn) {
  EXPECT_EQ(escape_for_terminal("\x1b[2J\x1b]0;t\x07"), "\\x1b[2J\\x1b]0;t\\x07");
  EXPECT_EQ(escape_for_terminal("a\nb\tc\rd\x7f"), "a\\nb\\tc\\rd\\x7f");
  EXPECT_EQ(escape_for_terminal("\xC2\x9B"
                                "31m"),
            "\\x9b31m")
      << "CSI as C1";
  EXPECT_EQ(escape_for_terminal("\x9B"), "\\x9b") << "the same as a bare byte";
  EXPECT_EQ(escape_for_terminal("\xE2\x80\xAEgpj.exe"), "\\u{202e}gpj.exe")
      << "right-to-left override";
  EXPECT_EQ(escape_for_terminal("\xE2\x81\xA6x"), "\\u{2066}x") << "isolate";
  EXPECT_EQ(escape_for_terminal("\xE2\x80\xA8"), "\\u{2028}") << "line separator";
  EXPECT_EQ(escape_for_terminal(std::string_view("\0", 1)), "\\x00");
}

TEST(EscapeForTerminal, LeavesPlainTextAlone) {
  const std::string text = "caf\xC3\xA9 \xE6\xBC\xA2\xF0\x9F\x98\x80 -rf \\";
  EXPECT_EQ(escape_for_terminal(text), text);
  EXPECT_EQ(escape_for_terminal("a\n\tb\r", Keep::kNewlinesAndTabs), "a\n\tb\\r");
}

TEST(ControlCharacter, IsC0OrDelAnywhereInAName) {
  for (const char c : {'\0', '\x01', '\t', '\n', '\r', '\x1b', '\x1f', '\x7f'}) {
    for (const std::string& name :
         {std::string(1, c), std::string("a") + c, c + std::string("a")}) {
      EXPECT_TRUE(has_control_character(name)) << static_cast<int>(c);
    }
  }
  for (const char* name : {"", " ", "a b.csv", "~", "caf\xC3\xA9", "\xff"}) {
    EXPECT_FALSE(has_control_character(name)) << name;
  }
}

}  // namespace
}  // namespace sbx
