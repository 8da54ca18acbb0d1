// Problem JSON, as RFC 9457 wants it.
#include "http/problem.h"

#include <nlohmann/json.hpp>

namespace sbx::http {
namespace {

using nlohmann::json;

TEST(Problem, CarriesWhatItWasGivenAndNothingElse) {
  const Response response = to_response({.status = 400,
                                         .code = "unknown_field",
                                         .detail = "there is no such limit",
                                         .field = "limits.memroy",
                                         .allowed = {"memory", "pids"},
                                         .fix = "write memory",
                                         .more = {{"expired_at", "2026-01-01T00:00:00Z"}}});
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.content_type, "application/problem+json");
  const json expected = {{"status", 400},
                         {"title", "Bad Request"},
                         {"code", "unknown_field"},
                         {"detail", "there is no such limit"},
                         {"field", "limits.memroy"},
                         {"allowed", {"memory", "pids"}},
                         {"fix", "write memory"},
                         {"expired_at", "2026-01-01T00:00:00Z"}};
  EXPECT_EQ(json::parse(response.body), expected);
  const json least = json::parse(to_response({.status = 500, .code = "internal"}).body);
  EXPECT_EQ(least.size(), 3U);
}

TEST(Problem, SaysWhenToComeBackAndWhatIsAllowedInHeadersToo) {
  const Response later =
      to_response({.status = 429, .code = "busy", .retry_after = std::chrono::seconds(7)});
  EXPECT_EQ(later.headers.find("Retry-After"), "7");
  EXPECT_EQ(json::parse(later.body)["retry_after"], 7);
  const Response method =
      to_response({.status = 405, .code = "method_not_allowed", .allowed = {"GET", "HEAD"}});
  EXPECT_EQ(method.headers.find("Allow"), "GET, HEAD");
}

TEST(Problem, AnyBytesOfTheClientMakeValidJson) {
  const Response response =
      to_response({.status = 404, .code = "not_found", .detail = "\xFF\"\n\x01"});
  EXPECT_EQ(json::parse(response.body)["detail"], "\xEF\xBF\xBD\"\n\x01");
}

}  // namespace
}  // namespace sbx::http
