// Whether a provider can be reached, without a completion.
#include <array>

#include "http/async/task_group.h"
#include "tests/unit/agentd/providers/http_provider_fixture.h"

namespace agentd::providers {
namespace {

class ReachTest : public HttpProviderTest {
 protected:
  Reach reach_at(const std::string& base_url) {
    sbx::async::Loop loop;
    sbx::http::AsyncClient client(loop);
    HttpProvider provider(loop, client, openai_wire(),
                          {.info = {.kind = "openai", .model = "m", .origin = base_url},
                           .base_url = base_url,
                           .key = redact::Secret(kKey)});
    Reach reach;
    sbx::async::test::run_on(loop, into_reach(provider, reach));
    EXPECT_EQ((reach.detail + reach.fix).find("0123456789abcdef"), std::string::npos);
    return reach;
  }
  Reach reach(int status, const std::string& body) {
    ScriptedServer server(
        [&](Peer& peer, const Heard&) { peer.answer(status, "application/json", body); });
    Reach reach = reach_at(server.url() + "/v1");
    heard_ = server.heard();
    return reach;
  }
  static Task<void> into_reach(Provider& provider, Reach& reach) {
    reach = co_await provider.reach(nullptr);
  }
};

TEST_F(ReachTest, OneThatListsItsModelsAnswersAndIsAskedForNothingElse) {
  const Reach good = reach(200, R"({"data":[{"id":"m"}]})");
  EXPECT_TRUE(good.asked);
  EXPECT_TRUE(good.answers);
  ASSERT_EQ(heard_.size(), 1U);
  EXPECT_EQ(heard_[0].line, "GET /v1/models HTTP/1.1");
  EXPECT_EQ(heard_[0].header("Authorization"), std::string("Bearer ") + kKey);
  EXPECT_TRUE(heard_[0].body.empty());
}

TEST_F(ReachTest, ManyWhoAskAtOnceOrSoonAfterAreOneCall) {
  ScriptedServer server(
      [](Peer& peer, const Heard&) { peer.answer(200, "application/json", R"({"data":[]})"); });
  sbx::async::Loop loop;
  sbx::http::AsyncClient client(loop);
  const std::string base_url = server.url() + "/v1";
  HttpProvider provider(loop, client, openai_wire(),
                        {.info = {.kind = "openai", .model = "m", .origin = base_url},
                         .base_url = base_url,
                         .key = redact::Secret(kKey)});
  std::array<Reach, 3> reaches;
  struct Body {
    static Task<void> run(sbx::async::Loop& loop, Provider& provider,
                          std::array<Reach, 3>& reaches) {
      sbx::async::TaskGroup tasks(loop);
      tasks.spawn(into_reach(provider, reaches[0]));
      tasks.spawn(into_reach(provider, reaches[1]));
      (void)co_await tasks.join(sbx::async::test::soon());
      co_await into_reach(provider, reaches[2]);
    }
  };
  sbx::async::test::run_on(loop, Body::run(loop, provider, reaches));
  for (const Reach& reach : reaches) EXPECT_TRUE(reach.answers) << reach.detail;
  EXPECT_EQ(server.heard().size(), 1U);
}

TEST_F(ReachTest, OneWithoutAListIsReachedAllTheSame) {
  EXPECT_TRUE(reach(404, "{}").answers);
  EXPECT_TRUE(reach(405, "").answers);
}

TEST_F(ReachTest, OneThatRefusesTheKeyOrIsNotThereSaysWhatToDo) {
  const Reach refused = reach(401, R"({"error":{"message":"bad key sk-test-0123456789abcdef"}})");
  EXPECT_FALSE(refused.answers);
  EXPECT_NE(refused.detail.find("refused the key (401)"), std::string::npos) << refused.detail;
  EXPECT_FALSE(refused.fix.empty());
  EXPECT_FALSE(reach(500, "").answers);
  const Reach none = reach_at("http://127.0.0.1:1/v1");
  EXPECT_FALSE(none.answers);
  EXPECT_NE(none.detail.find("127.0.0.1:1"), std::string::npos) << none.detail;
  EXPECT_NE(none.fix.find("base_url"), std::string::npos) << none.fix;
}

}  // namespace
}  // namespace agentd::providers
