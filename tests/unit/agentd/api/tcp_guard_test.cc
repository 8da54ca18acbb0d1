#include "agentd/api/tcp_guard.h"

#include <gtest/gtest.h>

#include "agentd/api/routes.h"

namespace agentd::api {
namespace {

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

std::string guard_code(const std::string& target, const sbx::http::Headers& headers) {
  const TcpGuard guard(redact::Secret(kToken), 8765);
  sbx::http::Request request;
  request.target = *sbx::http::parse_target(target);
  request.headers = headers;
  const auto problem = guard.check(request);
  return problem ? problem->code : "ok";
}

TEST(TcpGuard, TheTokenMayComeInTwoWays) {
  const std::string query = std::string("/?token=") + kToken;
  EXPECT_EQ(guard_code(query, {{"Host", "127.0.0.1:8765"}}), "ok");
  for (const std::string scheme : {"Bearer ", "bearer ", "BEARER "}) {
    EXPECT_EQ(guard_code("/", {{"Host", "localhost:8765"}, {"Authorization", scheme + kToken}}),
              "ok");
  }
  EXPECT_EQ(guard_code(query, {{"Host", "[::1]:8765"}}), "ok");
}

TEST(TcpGuard, WithoutItNothingIsAnswered) {
  for (const sbx::http::Headers& headers :
       {sbx::http::Headers{{"Host", "127.0.0.1:8765"}},
        sbx::http::Headers{{"Host", "127.0.0.1:8765"}, {"Authorization", "Bearer x"}},
        sbx::http::Headers{{"Host", "127.0.0.1:8765"}, {"Authorization", kToken}},
        sbx::http::Headers{{"Host", "127.0.0.1:8765"}, {"Authorization", "Bearer "}},
        sbx::http::Headers{{"Host", "127.0.0.1:8765"},
                           {"Cookie", std::string("agentd_token=") + kToken}}}) {
    EXPECT_EQ(guard_code("/", headers), "token_required");
  }
  EXPECT_EQ(guard_code("/?token=", {{"Host", "127.0.0.1:8765"}}), "token_required");
}

TEST(TcpGuard, OtherHostsAndOriginsAreRefusedWhateverTheyShow) {
  const std::string query = std::string("/?token=") + kToken;
  for (const char* host : {"example.com", "127.0.0.1", "127.0.0.1:80", "localhost.example.com:8765",
                           "127.0.0.1:8765.example.com", ""}) {
    EXPECT_EQ(guard_code(query, {{"Host", host}}), "wrong_host") << host;
  }
  EXPECT_EQ(guard_code(query, {}), "wrong_host");
  EXPECT_EQ(guard_code(query, {{"Host", "127.0.0.1:8765"}, {"Host", "127.0.0.1:8765"}}),
            "wrong_host");
  for (const char* origin :
       {"http://example.com", "null", "https://127.0.0.1:8765", "http://localhost:8765"}) {
    EXPECT_EQ(guard_code(query, {{"Host", "127.0.0.1:8765"}, {"Origin", origin}}), "wrong_origin")
        << origin;
  }
  EXPECT_EQ(guard_code(query, {{"Host", "127.0.0.1:8765"}, {"Origin", "http://127.0.0.1:8765"}}),
            "ok");
}

TEST(TcpGuard, TokensAreLongAndNeverTheSame) {
  const redact::Secret a = new_token();
  EXPECT_EQ(a.reveal().size(), 64U);
  EXPECT_NE(a.reveal(), new_token().reveal());
}

TEST(ContentDisposition, ANameCannotLeaveItsField) {
  EXPECT_EQ(content_disposition("plot.png"),
            "attachment; filename=\"plot.png\"; filename*=UTF-8''plot.png");
  EXPECT_EQ(content_disposition("d/\xC3\xA9\"\r\nX: y%.html"),
            "attachment; filename=\"_____X: y_.html\"; "
            "filename*=UTF-8''%C3%A9%22%0D%0AX%3A%20y%25.html");
}

}  // namespace
}  // namespace agentd::api
