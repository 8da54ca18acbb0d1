#include "runtime/base/toml.h"

#include <gtest/gtest.h>

namespace sbx {
namespace {

template <typename T>
std::string error_of(const Result<T>& result) {
  return result ? "no error" : to_string(result.error());
}

TEST(Toml, ValuesKnowTheirPathAndLine) {
  const auto root = parse_toml("a = 1\n[b]\nc = \"x\"\nd = [\n  true,\n  2.5,\n]\n", "f");
  ASSERT_TRUE(root) << error_of(root);
  ASSERT_NE(root->find("a"), nullptr);
  EXPECT_EQ(root->find("a")->integer, 1);
  const TomlValue* table = root->find("b");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->find("c")->path, "b.c");
  EXPECT_EQ(table->find("c")->line, 3U);
  EXPECT_EQ(table->find("c")->text, "x");
  const TomlValue* list = table->find("d");
  ASSERT_EQ(list->items.size(), 2U);
  EXPECT_EQ(list->items[1].path, "b.d[1]");
  EXPECT_EQ(list->items[1].line, 6U);
  EXPECT_EQ(list->items[1].text, "2.5");
}

TEST(Toml, SyntaxErrorsHaveFileAndLine) {
  const auto broken = parse_toml("a = 1\nb =\n", "f.toml");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(error_of(broken).starts_with("f.toml:2: ")) << error_of(broken);
}

// Inputs on which toml++ 3.3 breaks its own assertions, which in a release build is undefined.
TEST(Toml, WhatBreaksTheParsersAssertionsIsASyntaxError) {
  EXPECT_EQ(error_of(parse_toml("a = 1\n\n[ = 1\nb = 2\n", "f")), "f:3: not valid TOML");
  EXPECT_EQ(error_of(parse_toml("[.a]", "f")), "f:1: not valid TOML");
  EXPECT_EQ(error_of(parse_toml("a = 1\n[ # x\n", "f")), "f:2: not valid TOML");
  for (const char* text :
       {"\n\u00e9 = 1", "\na \u0251", "\na = \u00e9", "\n[\u0301]", "\na\u00e9 = 1"}) {
    EXPECT_TRUE(error_of(parse_toml(text, "f")).starts_with("f:2: ")) << text;
  }
  EXPECT_TRUE(parse_toml("a = \"\u00e9\" # \u0251", "f"));
}

TEST(Toml, AKeyGivenTwiceIsAnError) {
  EXPECT_TRUE(error_of(parse_toml("a = 1\na = 2\n", "f")).starts_with("f:2: "));
}

TEST(Toml, BytesThatAreNotUtf8AreAnError) {
  EXPECT_FALSE(parse_toml("a = \"\xff\"", "f"));
}

TEST(Toml, LengthIsBoundedAtItsLimitAndOnePast) {
  const std::string comment = "#" + std::string(kMaxTomlBytes - 2, 'x') + "\n";
  EXPECT_TRUE(parse_toml(comment, "f"));
  EXPECT_EQ(error_of(parse_toml(comment + "\n", "f")), "f: longer than 65536 bytes");
}

TEST(Toml, DepthIsBounded) {
  EXPECT_TRUE(parse_toml("a.b.c.d.e.f.g.h = 1", "f"));
  EXPECT_EQ(error_of(parse_toml("a.b.c.d.e.f.g.h.i = 1", "f")),
            "f: nested more than 8 levels deep");
  std::string dotted = "\nx";
  for (std::size_t i = 0; i <= kMaxTomlDotsPerLine; ++i) dotted += ".x";
  EXPECT_EQ(error_of(parse_toml(dotted + " = 1", "f")), "f:2: more than 32 dots in one line");
}

// The deepest tree that the bounds on text let through must not overflow a stack.
TEST(Toml, TheDeepestTextThatIsAcceptedIsParsed) {
  std::string text = "a = ";
  for (int i = 0; i < 250; ++i) {
    text += "[{";
    for (std::size_t dot = 0; dot < kMaxTomlDotsPerLine; ++dot) text += "x.";
    text += "x = \n";
  }
  EXPECT_FALSE(parse_toml(text, "f"));
  EXPECT_FALSE(parse_toml(std::string(60'000, '['), "f"));
}

TEST(Toml, UnknownKeysAndWrongKindsNameTheKey) {
  const auto root = parse_toml("[a]\nb = 1\n", "f");
  ASSERT_TRUE(root);
  const TomlValue& table = *root->find("a");
  EXPECT_EQ(error_of(check_keys("f", table, {"c", "d"})),
            "f:2: key 'a.b': unknown key; known here: c, d");
  EXPECT_EQ(error_of(check_kind("f", *table.find("b"), TomlKind::kString)),
            "f:2: key 'a.b': must be a string, not an integer");
  EXPECT_EQ(error_of(required_string("f", table, "c")), "f:1: key 'a': key 'c' is missing");
  EXPECT_EQ(error_of(required_string("f", *root, "c")), "f: key 'c' is missing");
}

TEST(Toml, ARequiredStringIsOneLine) {
  const auto root = parse_toml("a = \"x\\ny\"\nb = \"x\\u0000y\"\n", "f");
  ASSERT_TRUE(root) << error_of(root);
  EXPECT_EQ(error_of(required_string("f", *root, "a")), "f:1: key 'a': must be one line");
  EXPECT_EQ(error_of(required_string("f", *root, "b")), "f:2: key 'b': must be one line");
}

}  // namespace
}  // namespace sbx
