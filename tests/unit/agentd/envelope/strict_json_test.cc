#include "agentd/envelope/strict_json.h"

#include <gtest/gtest.h>

namespace agentd::envelope {
namespace {

std::string_view json_code(std::string_view text) {
  const auto parsed = parse_strict_json(text);
  const auto* problem = std::get_if<JsonProblem>(&parsed);
  return problem == nullptr ? "ok" : problem->code;
}

std::string round_trip(std::string_view text) {
  const auto parsed = parse_strict_json(text);
  const auto* node = std::get_if<JsonNode>(&parsed);
  return node == nullptr ? "no" : to_json(*node);
}

TEST(StrictJson, KeepsOrderDigitsAndKinds) {
  for (const char* text :
       {R"({"b":1,"a":[true,false,null,"x\n\"\\",{}],"c":-0.10})", "1e3", "18446744073709551615",
        "3.14159265358979323846264338327950288", "[]", R"("é")"}) {
    EXPECT_EQ(round_trip(text), text);
  }
}

TEST(StrictJson, NamesWhatIsWrong) {
  EXPECT_EQ(json_code(""), json_code::kSyntax);
  EXPECT_EQ(json_code("{"), json_code::kSyntax);
  EXPECT_EQ(json_code("{} {}"), json_code::kSyntax);
  EXPECT_EQ(json_code("{'a': 1}"), json_code::kSyntax);
  EXPECT_EQ(json_code("[1,]"), json_code::kSyntax);
  EXPECT_EQ(json_code("// x\n1"), json_code::kSyntax);
  EXPECT_EQ(json_code("\"\xff\""), json_code::kSyntax);
  EXPECT_EQ(json_code("\"a\nb\""), json_code::kSyntax);
  EXPECT_EQ(json_code(R"({"a":1,"a":2})"), json_code::kDuplicateKey);
  EXPECT_EQ(json_code(R"({"a":1,"b":{"a":2}})"), "ok");
  EXPECT_EQ(json_code(R"({"a":1,"\u0061":2})"), json_code::kDuplicateKey);
  EXPECT_EQ(json_code("[NaN]"), json_code::kNotANumber);
  EXPECT_EQ(json_code("[Infinity]"), json_code::kNotANumber);
  EXPECT_EQ(json_code("[-Infinity]"), json_code::kNotANumber);
  EXPECT_EQ(json_code("1e999"), json_code::kNumberRange);
  EXPECT_EQ(json_code(R"("\ud800")"), json_code::kLoneSurrogate);
  EXPECT_EQ(json_code(R"("\ud800x")"), json_code::kLoneSurrogate);
  EXPECT_EQ(json_code(R"("\udc00")"), json_code::kLoneSurrogate);
  EXPECT_EQ(json_code(R"("\ud83d\ude00")"), "ok");
}

TEST(StrictJson, DepthHasALimit) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(json_code(nested(kMaxJsonDepth)), "ok");
  EXPECT_EQ(json_code(nested(kMaxJsonDepth + 1)), json_code::kTooDeep);
  EXPECT_EQ(json_code(std::string(kMaxJsonBytes, '[')), json_code::kTooDeep);
}

TEST(StrictJson, LengthAndNumberOfValuesHaveLimits) {
  const std::string longest = '"' + std::string(kMaxJsonBytes - 2, 'x') + '"';
  EXPECT_EQ(json_code(longest), "ok");
  EXPECT_EQ(json_code(longest + " "), json_code::kTooLong);
  std::string list = "[1";
  for (std::size_t i = 2; i < kMaxJsonValues; ++i) list += ",1";
  EXPECT_EQ(json_code(list + "]"), "ok") << "with the list itself: the limit";
  EXPECT_EQ(json_code(list + ",1]"), json_code::kTooMany);
}

TEST(StrictJson, IntegersBeyond64BitsKeepTheirDigits) {
  for (const char* fits : {"0", "-1", "9223372036854775808", "18446744073709551615",
                           "-9223372036854775808", "1e30", "18446744073709551616.0"}) {
    EXPECT_FALSE(is_long_integer(fits)) << fits;
    EXPECT_EQ(to_json(std::get<JsonNode>(parse_strict_json(fits))), fits);
  }
  for (const std::string far :
       {"18446744073709551616", "-9223372036854775809", "12345678901234567890123"}) {
    EXPECT_TRUE(is_long_integer(far)) << far;
    EXPECT_EQ(to_json(std::get<JsonNode>(parse_strict_json("[{\"k\":" + far + "}]"))),
              "[{\"k\":\"" + far + "\"}]");
  }
}

}  // namespace
}  // namespace agentd::envelope
