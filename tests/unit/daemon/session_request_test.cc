// The body of POST /v1/sessions.
#include "runtime/daemon/session_request.h"

#include <gmock/gmock.h>

#include "tests/unit/daemon/rules.h"

namespace sbx::daemon {
namespace {

using std::chrono::seconds;

const SessionTimes kTimes{.idle = seconds(600), .age = seconds(86400)};

OrProblem<SessionWish> parse(std::string_view body) {
  static const RequestRules rules = [] {
    RequestRules made = test::default_rules();
    (void)made.ceilings.set("work", "1G");
    (void)made.ceilings.set("work_inodes", "65536");
    return made;
  }();
  return parse_session_request(body, rules, kTimes);
}

SessionWish wish(std::string_view body) {
  auto parsed = parse(body);
  EXPECT_TRUE(std::holds_alternative<SessionWish>(parsed)) << body;
  return std::holds_alternative<SessionWish>(parsed) ? std::get<SessionWish>(parsed)
                                                     : SessionWish{};
}

std::string refused(std::string_view body, std::string_view field) {
  auto parsed = parse(body);
  if (!std::holds_alternative<http::Problem>(parsed)) return "accepted";
  EXPECT_EQ(std::get<http::Problem>(parsed).field, field) << body;
  return std::get<http::Problem>(parsed).code;
}

TEST(SessionRequests, MayBeEmpty) {
  for (const char* body : {"", "{}", "{\"limits\":{}}"}) {
    const SessionWish made = wish(body);
    EXPECT_EQ(made.work, 64U << 20);
    EXPECT_EQ(made.work_inodes, 4096U);
    EXPECT_EQ(made.idle, seconds(600));
    EXPECT_EQ(made.age, seconds(86400));
  }
}

TEST(SessionRequests, NameQuotaAndTimes) {
  const SessionWish made =
      wish(R"({"limits":{"work":"1G","work_inodes":65536},"idle_seconds":1,"age_seconds":86400})");
  EXPECT_EQ(made.work, 1U << 30);
  EXPECT_EQ(made.work_inodes, 65536U);
  EXPECT_EQ(made.idle, seconds(1));
  EXPECT_EQ(made.age, seconds(86400));
}

TEST(SessionRequests, AboveACeilingAreRefusedWithIt) {
  EXPECT_EQ(refused(R"({"limits":{"work":1073741825}})", "limits.work"), "above_ceiling");
  EXPECT_EQ(refused(R"({"limits":{"work_inodes":65537}})", "limits.work_inodes"), "above_ceiling");
  EXPECT_EQ(refused(R"({"idle_seconds":601})", "idle_seconds"), "above_ceiling");
  EXPECT_EQ(refused(R"({"age_seconds":86401})", "age_seconds"), "above_ceiling");
}

TEST(SessionRequests, WithAnythingElseAreRefused) {
  EXPECT_EQ(refused(R"({"quota":1})", "quota"), "unknown_field");
  EXPECT_EQ(refused(R"({"limits":{"memory":"1G"}})", "limits.memory"), "unknown_field");
  EXPECT_EQ(refused(R"({"limits":[]})", "limits"), "wrong_type");
  EXPECT_EQ(refused(R"({"limits":{"work":true}})", "limits.work"), "wrong_type");
  EXPECT_EQ(refused(R"({"idle_seconds":"600"})", "idle_seconds"), "wrong_type");
  EXPECT_EQ(refused(R"({"idle_seconds":1.5})", "idle_seconds"), "wrong_type");
  EXPECT_EQ(refused(R"({"idle_seconds":0})", "idle_seconds"), "invalid_value");
  EXPECT_EQ(refused(R"({"idle_seconds":-5})", "idle_seconds"), "invalid_value");
  EXPECT_EQ(refused(R"({"idle_seconds":99999999999999999999})", "idle_seconds"), "wrong_type");
  EXPECT_EQ(refused(R"({"limits":{"work":0}})", "limits.work"), "invalid_value");
  EXPECT_EQ(refused(R"([])", ""), "wrong_type");
  EXPECT_EQ(refused(R"({"idle_seconds":1,"idle_seconds":2})", "idle_seconds"), "duplicate_field");
  EXPECT_EQ(refused("{", ""), "invalid_json");
}

}  // namespace
}  // namespace sbx::daemon
