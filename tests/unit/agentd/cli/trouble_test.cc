// Whose fault a failed exchange is: exit 2 for what was typed, exit 3 for the machinery.
#include <gtest/gtest.h>

#include "agentd/cli/api_client.h"
#include "agentd/cli/exit_codes.h"

namespace agentd::cli {
namespace {

using sbx::http::ClientError;

TEST(Troubles, AProblemOfTheRequestIsTheCallersWithFieldAndFix) {
  const Trouble trouble = trouble_of(
      413, R"({"code":"text_too_long","detail":"Too long.","field":"text","fix":"attach"})");
  EXPECT_TRUE(trouble.wrong_use);
  EXPECT_EQ(trouble.text, "Too long. (text)");
  EXPECT_EQ(trouble.fix, "attach");
  EXPECT_TRUE(trouble_of(404, "{}").wrong_use);
  EXPECT_TRUE(trouble_of(409, "{}").wrong_use);
}

TEST(Troubles, NoRoomAndErrorsOfTheServerAreNot) {
  for (const int status : {429, 500, 503}) {
    EXPECT_FALSE(trouble_of(status, R"({"detail":"d"})").wrong_use) << status;
  }
}

TEST(Troubles, AnAnswerThatIsNoProblemStillHasItsStatus) {
  for (const char* body : {"", "<html>", "[]", "7", R"({"detail":7})"}) {
    EXPECT_EQ(trouble_of(502, body).text, "agentd answered 502") << body;
  }
}

TEST(Troubles, ADaemonThatDoesNotAnswerIsNamedWithItsSocketAndAFix) {
  const Trouble trouble =
      trouble_of(ClientError{.kind = ClientError::Kind::kUnreachable, .detail = "refused"}, "/s");
  EXPECT_FALSE(trouble.wrong_use);
  EXPECT_NE(trouble.text.find("/s"), std::string::npos);
  EXPECT_NE(trouble.fix.find("--socket"), std::string::npos);
}

TEST(ExitCodes, TellSuccessGivingUpAndFailingApart) {
  EXPECT_EQ(exit_code_of("succeeded"), 0);
  EXPECT_EQ(exit_code_of("gave_up"), 1);
  EXPECT_EQ(exit_code_of("cancelled"), 1);
  EXPECT_EQ(exit_code_of("failed"), 3);
}

}  // namespace
}  // namespace agentd::cli
