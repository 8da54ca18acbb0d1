// Which provider a configuration means, and that the first line says so.
#include "agentd/providers/choose.h"

#include <gtest/gtest.h>

#include "tests/agent/support/scripted_server.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::providers {
namespace {

using config::AgentConfig;
using sbx::async::Task;
using test::Heard;
using test::Peer;
using test::ScriptedServer;

// Nobody listens there: the discard port of this machine.
constexpr char kNobody[] = "http://127.0.0.1:9/v1";

struct Found {
  std::string kind;
  std::string model;
  std::string origin;
  bool replayed = false;
  std::string said;  // or the error
};

Found choose(const AgentConfig& config, const std::string& key = {},
             const std::vector<std::string>& local = {}) {
  struct Body {
    static Task<void> run(sbx::async::Loop& loop, AgentConfig config, redact::Secret key,
                          std::vector<std::string> local, Found& found) {
      sbx::http::AsyncClient client(loop);
      auto chosen = co_await choose_provider(loop, client, std::move(config), std::move(key),
                                             std::move(local));
      if (!chosen) {
        found.said = to_string(chosen.error());
        co_return;
      }
      const ProviderInfo& info = chosen->provider->info();
      found = {info.kind, info.model, info.origin, info.replayed, chosen->said};
    }
  };
  Found found;
  sbx::async::Loop loop;
  sbx::async::test::run_on(loop, Body::run(loop, config, redact::Secret(key), local, found));
  return found;
}

AgentConfig live(const std::string& kind, const std::string& base_url) {
  AgentConfig config;
  config.provider_kind = kind;
  config.base_url = base_url;
  config.model = "m-1";
  return config;
}

// A server of OpenAI's kind that lists the model.
void list_models(Peer& peer, const Heard& heard) {
  EXPECT_EQ(heard.line, "GET /v1/models HTTP/1.1");
  EXPECT_EQ(heard.header("Authorization"), "") << "no key is shown to a server that was found";
  peer.answer(200, "application/json", R"({"data":[{"id":"local-7b"},{"id":"other"}]})");
}

TEST(ChooseProvider, OneThatIsNamedIsTaken) {
  const Found openai = choose(live("openai", "https://api.example.com/v1/"), "a-key-of-length");
  EXPECT_EQ(openai.kind, "openai");
  EXPECT_EQ(openai.origin, "https://api.example.com/v1");
  EXPECT_EQ(openai.said, "provider: openai (m-1 at https://api.example.com/v1)");
  EXPECT_EQ(choose(live("anthropic", "https://a.example/v1"), "a-key-of-length").kind, "anthropic");
  AgentConfig replay;
  replay.provider_kind = "replay";
  EXPECT_TRUE(choose(replay, "a-key-of-length").replayed);
}

TEST(ChooseProvider, AutoTakesAConfiguredKeyFirst) {
  ScriptedServer server(list_models);
  const Found found =
      choose(live("auto", "https://api.example.com/v1"), "a-key-of-length", {server.url() + "/v1"});
  EXPECT_EQ(found.kind, "openai");
  EXPECT_EQ(found.said,
            "provider: openai (by the configured key, m-1 at https://api.example.com/v1)");
  EXPECT_TRUE(server.heard().empty()) << "nobody else is asked";
  EXPECT_EQ(choose(live("auto", "https://api.anthropic.com/v1"), "a-key-of-length").kind,
            "anthropic");
}

TEST(ChooseProvider, AutoTakesTheFirstServerOfThisMachineThatListsAModel) {
  ScriptedServer other([](Peer& peer, const Heard&) {
    peer.answer(200, "text/html", "<html>something else listens here</html>");
  });
  ScriptedServer empty(
      [](Peer& peer, const Heard&) { peer.answer(200, "application/json", R"({"data":[]})"); });
  ScriptedServer broken([](Peer& peer, const Heard&) { peer.answer(500, "text/plain", "no"); });
  ScriptedServer server(list_models);
  const Found found = choose({}, "",
                             {kNobody, other.url() + "/v1", empty.url() + "/v1",
                              broken.url() + "/v1", server.url() + "/v1"});
  EXPECT_EQ(found.kind, "openai");
  EXPECT_EQ(found.model, "local-7b");
  EXPECT_EQ(found.said,
            "provider: openai (found on this machine, local-7b at " + server.url() + "/v1)");
  EXPECT_EQ(other.heard().size(), 1U);
}

TEST(ChooseProvider, AutoDoesNotWaitForAServerThatSaysNothing) {
  ScriptedServer silent([](Peer& peer, const Heard&) { EXPECT_TRUE(peer.wait_until_gone()); });
  const Found found = choose({}, "", {silent.url() + "/v1"});
  EXPECT_TRUE(found.replayed);
}

TEST(ChooseProvider, AutoWithoutKeyAndServerReplaysTheDemoAndSaysSo) {
  const Found found = choose({}, "", {kNobody});
  EXPECT_TRUE(found.replayed);
  EXPECT_EQ(found.kind, "replay");
  EXPECT_TRUE(found.said.starts_with("provider: replay (no key and no local server; "))
      << found.said;
  EXPECT_TRUE(found.said.ends_with("recorded replies of the shipped demo; no model is asked)"));
}

TEST(ChooseProvider, RecordingsThatAreNotThereAreNamed) {
  AgentConfig config;
  config.provider_kind = "replay";
  config.recordings = {"/no/such/recordings"};
  EXPECT_NE(choose(config).said.find("/no/such/recordings"), std::string::npos);
}

TEST(LocalServers, AreOfThisMachineAlone) {
  for (const std::string& url : local_servers()) {
    EXPECT_TRUE(config::is_loopback_url(url)) << url;
  }
}

}  // namespace
}  // namespace agentd::providers
