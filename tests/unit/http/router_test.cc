// Which route answers what.
#include "http/router.h"

namespace sbx::http {
namespace {

Router with_routes() {
  Router router;
  for (const char* path : {"/", "/v1/sessions", "/v1/sessions/{id}", "/v1/sessions/list",
                           "/v1/sessions/{id}/files", "/v1/sessions/{id}/files/{path...}"}) {
    router.add({Method::kGet, path});
  }
  router.add({Method::kPost, "/v1/sessions"});
  router.add({Method::kDelete, "/v1/sessions/{id}"});
  router.add({Method::kPut, "/v1/sessions/{id}/files/{path...}"});
  router.add({Method::kPost, "/v1/run"});
  return router;
}

struct Found {
  std::string route;
  std::map<std::string, std::string> parameters;
  bool operator==(const Found&) const = default;
};

Found find(const Router& router, Method method, std::string_view target) {
  const auto found = router.find(method, *parse_target(target));
  if (const auto* match = std::get_if<Router::Match>(&found)) {
    return {match->route->path, match->parameters};
  }
  const auto& problem = std::get<Problem>(found);
  Found none{std::to_string(problem.status), {}};
  for (const auto& method_name : problem.allowed) none.route += " " + method_name;
  return none;
}

TEST(Router, FindsTheMostSpecificTemplate) {
  const Router router = with_routes();
  EXPECT_EQ(find(router, Method::kGet, "/"), (Found{"/", {}}));
  EXPECT_EQ(find(router, Method::kGet, "/v1/sessions/list"), (Found{"/v1/sessions/list", {}}));
  EXPECT_EQ(find(router, Method::kGet, "/v1/sessions/abc"),
            (Found{"/v1/sessions/{id}", {{"id", "abc"}}}));
  EXPECT_EQ(find(router, Method::kDelete, "/v1/sessions/list"),
            (Found{"/v1/sessions/{id}", {{"id", "list"}}}));
}

TEST(Router, ARestTakesOneSegmentOrMoreAsTheyWereDecoded) {
  const Router router = with_routes();
  const std::string route = "/v1/sessions/{id}/files/{path...}";
  EXPECT_EQ(find(router, Method::kPut, "/v1/sessions/s/files/a"),
            (Found{route, {{"id", "s"}, {"path", "a"}}}));
  EXPECT_EQ(find(router, Method::kPut, "/v1/sessions/s/files/a/b%20c//d%2Fe/.."),
            (Found{route, {{"id", "s"}, {"path", "a/b c//d/e/.."}}}));
  EXPECT_EQ(find(router, Method::kPut, "/v1/sessions/s/files/"), (Found{"404", {}}));
  EXPECT_EQ(find(router, Method::kGet, "/v1/sessions/s/files"),
            (Found{"/v1/sessions/{id}/files", {{"id", "s"}}}));
}

TEST(Router, AParameterIsNeverEmptyAndASlashAtTheEndIsAnotherPath) {
  const Router router = with_routes();
  EXPECT_EQ(find(router, Method::kGet, "/v1/sessions/"), (Found{"404", {}}));
  EXPECT_EQ(find(router, Method::kPost, "/v1/run/"), (Found{"404", {}}));
  EXPECT_EQ(find(router, Method::kPost, "//v1/run"), (Found{"404", {}}));
}

TEST(Router, AnotherMethodGets405WithThoseThatThereAre) {
  const Router router = with_routes();
  EXPECT_EQ(find(router, Method::kDelete, "/v1/sessions"), (Found{"405 GET POST HEAD", {}}));
  EXPECT_EQ(find(router, Method::kOther, "/v1/run"), (Found{"405 POST", {}}));
  EXPECT_EQ(find(router, Method::kPost, "/v1/sessions/list"), (Found{"405 DELETE GET HEAD", {}}));
  EXPECT_EQ(find(router, Method::kOther, "/nowhere"), (Found{"404", {}}));
}

TEST(Router, ItsProblemsDoNotRepeatThePath) {
  const Router router = with_routes();
  for (const char* target : {"/sk-key", "/v1/sessions/sk-key"}) {
    const auto found = router.find(Method::kPost, *parse_target(target));
    ASSERT_TRUE(std::holds_alternative<Problem>(found));
    EXPECT_FALSE(std::get<Problem>(found).detail.empty());
    EXPECT_EQ(std::get<Problem>(found).detail.find("sk-key"), std::string::npos);
  }
}

TEST(Router, HeadIsAnsweredByGet) {
  const Router router = with_routes();
  EXPECT_EQ(find(router, Method::kHead, "/v1/sessions"), (Found{"/v1/sessions", {}}));
  EXPECT_EQ(find(router, Method::kHead, "/v1/run"), (Found{"405 POST", {}}));
}

}  // namespace
}  // namespace sbx::http
