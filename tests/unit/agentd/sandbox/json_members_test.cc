#include "agentd/sandbox/json_members.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

namespace agentd::sandbox {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"a", "b", "c"};

TEST(JsonMembers, AreThoseThatAreAskedForAsTheyStand) {
  EXPECT_EQ(json_members(R"({"a":1,"x":2,"b":[{"a":"}"},3] ,"y":{"c":1}})", kNames),
            R"({"a":1,"b":[{"a":"}"},3] })");
  EXPECT_EQ(json_members(R"({ "x":null, "c" : "\"\\", "xa":true })", kNames), R"({"c" : "\"\\"})");
  EXPECT_EQ(json_members("{}", kNames), "{}");
  EXPECT_EQ(json_members(R"({"x":{}})", kNames), "{}");
}

TEST(JsonMembers, WhatAStringHoldsIsNoMember) {
  const std::string hostile = R"(","a":9,"x":{[}]\)";
  const nlohmann::json json = {{"a", 1}, {"before", hostile}, {"c", hostile}, {hostile, 3}};
  const nlohmann::json wanted = {{"a", 1}, {"c", hostile}};
  EXPECT_EQ(json_members(json.dump(), kNames), wanted.dump());
}

TEST(JsonMembers, WhatIsNoWholeObjectComesBackAsItIs) {
  for (const std::string text : {"",
                                 "[]",
                                 "null",
                                 "\xff",
                                 "7",
                                 "\"{}\"",
                                 "[{\"a\":1}]",
                                 "{",
                                 "{\"",
                                 "{\"a",
                                 "{\"a\":",
                                 "{\"a\":1",
                                 "{\"a\":1,",
                                 "{\"a\":1,}",
                                 "{\"a\":\"",
                                 "{\"a\":\"\\",
                                 "{\"a\":[1}",
                                 "{\"a\":1]}",
                                 "{\"x\":{}",
                                 "{\"a\":1} ",
                                 "{\"a\":1}{}",
                                 "{x}",
                                 " {\"a\":1}"}) {
    EXPECT_EQ(json_members(text, kNames), text);
  }
}

}  // namespace
}  // namespace agentd::sandbox
