// Whose fault a failed exchange is: exit 2 for what was typed, exit 3 for the machinery.
#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "agentd/cli/api_client.h"
#include "agentd/cli/exit_codes.h"
#include "agentd/cli/verbs.h"
#include "runtime/base/sys.h"
#include "tests/support/process.h"

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
  EXPECT_EQ(trouble.text, "agentd does not answer on /s: refused");
  EXPECT_NE(trouble.fix.find("--socket"), std::string::npos);
}

TEST(Troubles, ADaemonThatIsSilentIsToldAsThatWithAFix) {
  const Trouble trouble =
      trouble_of(ClientError{.kind = ClientError::Kind::kTimeout, .detail = "no answer"}, "/s");
  EXPECT_EQ(trouble.text, "agentd on /s was silent: no answer");
  EXPECT_NE(trouble.fix.find("stopped or hangs"), std::string::npos);
}

TEST(Troubles, NoPermissionIsNotADaemonThatIsToBeStarted) {
  const Trouble trouble = trouble_of(
      ClientError{
          .kind = ClientError::Kind::kUnreachable, .detail = "refused", .sys_errno = EACCES},
      "/none/s");
  EXPECT_NE(trouble.text.find("permission denied"), std::string::npos) << trouble.text;
  EXPECT_EQ(trouble.fix.find("start agentd"), std::string::npos) << trouble.fix;
  EXPECT_EQ(trouble.fix.find("usermod"), std::string::npos) << trouble.fix;
}

TEST(Troubles, NoRoomForNowSaysWhenToTryAgain) {
  EXPECT_EQ(trouble_of(429, R"({"detail":"d"})", "7").fix, "try again in 7 s");
  EXPECT_EQ(trouble_of(429, R"({"detail":"d","fix":"wait"})", "7").fix, "wait; try again in 7 s");
  EXPECT_EQ(trouble_of(429, R"({"detail":"d"})", "Wed, 21 Oct 2026 07:28:00 GMT").fix, "");
  EXPECT_EQ(trouble_of(429, R"({"detail":"d"})").fix, "");
}

TEST(Troubles, AnotherProgramOnTheSocketIsNotTakenForAgentd) {
  using Json = nlohmann::ordered_json;
  const Json agentd{
      {"version", "1"}, {"provider", {{"kind", "replay"}}}, {"sandbox", {{"reachable", false}}}};
  EXPECT_FALSE(stranger(agentd, "/s"));
  const Json sbxd{
      {"version", "1"}, {"profiles", Json::array()}, {"admission", {{"max_running", 8}}}};
  ASSERT_TRUE(stranger(sbxd, "/s"));
  EXPECT_EQ(stranger(sbxd, "/s")->text, "what answers on /s is sbxd, and not agentd");
  EXPECT_FALSE(stranger(sbxd, "/s")->fix.empty());
  for (const char* other : {"{}", "[]", "7", "null", R"({"provider":{},"sandbox":{}})",
                            R"({"provider":{"kind":"x"},"sandbox":"y"})"}) {
    ASSERT_TRUE(stranger(Json::parse(other), "/s")) << other;
    EXPECT_EQ(stranger(Json::parse(other), "/s")->text, "what answers on /s is not agentd");
  }
}

class AttachedFiles : public ::testing::Test {
 protected:
  // What is said of reading it with that limit.
  static sbx::Error error_of(const std::string& path) {
    const auto read = sbx::sys::read_file(path, 10);
    EXPECT_FALSE(read) << path;
    return unreadable_file(path, read.error());
  }
  sbx::test::TemporaryDirectory directory_;
};

TEST_F(AttachedFiles, ThatCannotBeReadSayWhyOnceWithAFixOfTheirOwn) {
  const std::string none = directory_.path() + "/none.csv";
  EXPECT_EQ(error_of(none).detail, "there is no file " + none);
  EXPECT_EQ(error_of(none).fix, "see whether its name is right");
  EXPECT_EQ(error_of(directory_.path()).detail, directory_.path() + " is a directory");
  EXPECT_EQ(error_of("/dev/null").detail, "/dev/null is not a regular file");
  const std::string large = directory_.write("large", "more than ten");
  EXPECT_EQ(error_of(large).detail, large + " is too large");
  EXPECT_EQ(error_of(large).fix, "files are at most 10 MiB together");
  const sbx::Error closed = sbx::host_lacks("open", EACCES, large, "");
  EXPECT_EQ(unreadable_file(large, closed).detail, large + " is not readable for you");
  EXPECT_NE(unreadable_file(large, closed).fix.find("readable"), std::string::npos);
  EXPECT_EQ(unreadable_file(large, closed).code, sbx::ErrorCode::kInvalid);
}

TEST(ExitCodes, TellSuccessGivingUpFailingAndWorkingApart) {
  EXPECT_EQ(exit_code_of("succeeded"), 0);
  EXPECT_EQ(exit_code_of("gave_up"), 1);
  EXPECT_EQ(exit_code_of("cancelled"), 1);
  EXPECT_EQ(exit_code_of("failed"), 3);
  for (const char* state : {"queued", "generate", "execute", "evaluate", "repair", "give_up"}) {
    EXPECT_EQ(exit_code_of(state), 4) << state;
  }
}

}  // namespace
}  // namespace agentd::cli
