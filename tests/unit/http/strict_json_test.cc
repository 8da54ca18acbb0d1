#include "http/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SBX_SANITIZED
#elif defined(__has_feature)  // how clang says it
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SBX_SANITIZED
#endif
#endif

namespace sbx::http {
namespace {

using ::testing::HasSubstr;

JsonValue value_of(std::string_view text) {
  auto parsed = parse_strict_json(text);
  const auto* problem = std::get_if<Problem>(&parsed);
  EXPECT_EQ(problem, nullptr) << text << ": " << (problem == nullptr ? "" : problem->detail);
  return problem == nullptr ? std::get<JsonValue>(parsed) : JsonValue{};
}

Problem problem_of(std::string_view text) {
  auto parsed = parse_strict_json(text);
  const auto* problem = std::get_if<Problem>(&parsed);
  EXPECT_NE(problem, nullptr) << text;
  return problem == nullptr ? Problem{} : *problem;
}

TEST(StrictJson, ReadsEveryKindOfValue) {
  const JsonValue root =
      value_of(R"({"a":null,"b":true,"c":-7,"d":0.5,"e":"x\u0041","f":[1,[2]],"g":{"h":3}})");
  ASSERT_EQ(root.kind, JsonKind::kObject);
  EXPECT_EQ(root.find("a")->kind, JsonKind::kNull);
  EXPECT_EQ(root.find("b")->text, "true");
  EXPECT_EQ(root.find("c")->kind, JsonKind::kInteger);
  EXPECT_EQ(root.find("c")->text, "-7");
  EXPECT_EQ(root.find("d")->kind, JsonKind::kFloat);
  EXPECT_EQ(root.find("d")->text, "0.5");
  EXPECT_EQ(root.find("e")->text, "xA");
  EXPECT_EQ(root.find("f")->items[1].items[0].text, "2");
  EXPECT_EQ(root.find("g")->find("h")->text, "3");
  EXPECT_EQ(root.find("i"), nullptr);
}

TEST(StrictJson, HugeNumbersStayNumbers) {
  EXPECT_EQ(value_of("18446744073709551615").text, "18446744073709551615");
  EXPECT_EQ(value_of("18446744073709551616").kind, JsonKind::kFloat);
  EXPECT_EQ(problem_of("1e999").code, "invalid_json");
}

TEST(StrictJson, WhatIsNoJsonIsSaidWithItsPlace) {
  for (const char* text : {"", "{", "{\"a\":}", "[1,]", "NaN", "Infinity", "{'a':1}", "{} {}",
                           "\"\xff\"", "\"\xc3\"", "\"\\ud800\"", "01", "\"a\nb\"", "\xef\xbb\xbf",
                           "\xef\xbb\xbf{}", "\xef\xbb\xbf\xef\xbb\xbf{}"}) {
    const Problem problem = problem_of(text);
    EXPECT_EQ(problem.status, 400) << text;
    EXPECT_EQ(problem.code, "invalid_json") << text;
    EXPECT_THAT(problem.detail, HasSubstr("at byte ")) << text;
  }
}

// Not under the sanitizers, whose own memory counts and whose allocator ends the process.
#ifndef SBX_SANITIZED
TEST(StrictJson, ABodyForWhichMemoryIsLackingIsForLater) {
  const auto parse_with_little = [] {
    const std::string text = '"' + std::string(64U << 20, 'x') + '"';
    const rlimit tight{0, 0};  // nothing new is mapped
    if (::setrlimit(RLIMIT_AS, &tight) != 0) std::_Exit(2);
    auto parsed = parse_strict_json(text);
    const auto* problem = std::get_if<Problem>(&parsed);
    const bool told = problem != nullptr && problem->status == 503 && problem->retry_after &&
                      problem->code == problem_code::kBodiesTooLarge;
    std::_Exit(told ? 0 : 1);
  };
  EXPECT_EXIT(parse_with_little(), ::testing::ExitedWithCode(0), "");
}
#endif

TEST(StrictJson, TheAnswerDoesNotRepeatWhatWasSent) {
  const std::string text = "{\"a\": nope" + std::string(100'000, 'x') + "}";
  EXPECT_LT(problem_of(text).detail.size(), 100U);
}

TEST(StrictJson, ADuplicateNameIsAnErrorThatNamesItsPath) {
  EXPECT_EQ(problem_of(R"({"a":1,"a":2})").code, "duplicate_field");
  EXPECT_EQ(problem_of(R"({"a":1,"a":2})").field, "a");
  EXPECT_EQ(problem_of(R"({"files":[{"name":1},{"name":1,"name":2}]})").field, "files[1].name");
  (void)value_of(R"({"a":{"x":1},"b":{"x":1}})");
}

TEST(StrictJson, NestingIsBounded) {
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  (void)value_of(deepest);
  EXPECT_EQ(problem_of("[" + deepest + "]").status, 413);
  EXPECT_EQ(problem_of(std::string(1'000'000, '[')).status, 413);
  EXPECT_EQ(problem_of(std::string(100, '{')).status, 400);
}

TEST(StrictJson, TheNumberOfValuesIsBounded) {
  std::string many = "[0";
  for (std::size_t i = 2; i < kMaxJsonValues; ++i) many += ",0";  // the array is one
  (void)value_of(many + "]");
  EXPECT_EQ(problem_of(many + ",0]").status, 413);
}

TEST(StrictJson, TheLengthOfNamesIsBounded) {
  const std::string longest(kMaxJsonName, 'n');
  (void)value_of("{\"" + longest + "\":1}");
  EXPECT_EQ(problem_of("{\"" + longest + "n\":1}").status, 413);
}

}  // namespace
}  // namespace sbx::http
