// Providers that refuse, fail, are slow or not there: what is tried again, and what may have cost.
#include "tests/unit/agentd/providers/http_provider_fixture.h"

namespace agentd::providers {
namespace {

TEST_F(HttpProviderTest, BusyServersAreAskedAgain) {
  for (const int status : {429, 500, 502, 503, 529}) {
    std::atomic<int> asked = 0;
    const Completion reply = completion([&](Peer& peer, const Heard&) {
      if (++asked < 3) {
        // Numeric codes, and no message at all.
        peer.answer(status, "application/json", R"({"error":{"code":500}})");
      } else {
        peer.answer(200, "application/json", kPlain);
      }
    });
    EXPECT_EQ(reply.text, "plain");
    EXPECT_EQ(reply.tries, 3);
  }
}

// The server may have made the reply that got lost: a second try would be a second charge.
TEST_F(HttpProviderTest, AConnectionThatBreaksBeforeTheReplyIsNotTriedAgain) {
  std::atomic<int> asked = 0;
  const ProviderError broken = error([&](Peer& peer, const Heard&) {
    if (++asked == 1) return peer.close();
    peer.answer(200, "application/json", kPlain);
  });
  EXPECT_EQ(broken.trouble, Trouble::kUnreachable);
  EXPECT_EQ(heard_.size(), 1U);
  EXPECT_TRUE(broken.may_have_cost);
  EXPECT_TRUE(broken.detail.ends_with("; not asked again, since this call may have been charged"))
      << broken.detail;
}

TEST_F(HttpProviderTest, RetryAfterIsKeptUpToItsLimit) {
  std::atomic<int> asked = 0;
  const auto begin = std::chrono::steady_clock::now();
  const Completion reply = completion([&](Peer& peer, const Heard&) {
    if (++asked == 1) {
      peer.answer(429, "application/json", "{}", "Retry-After: 1\r\n");
    } else {
      peer.answer(200, "application/json", kPlain);
    }
  });
  EXPECT_EQ(reply.tries, 2);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  const ProviderError patient = error([&](Peer& peer, const Heard&) {
    peer.answer(429, "application/json", "{}", "Retry-After: 3600\r\n");
  });
  EXPECT_EQ(patient.trouble, Trouble::kOverloaded);
  EXPECT_EQ(patient.tries, 1) << "an hour is more than anybody waits";
  EXPECT_TRUE(patient.detail.ends_with("; it wants a pause of 3600 s, and at most 30 s are waited"))
      << patient.detail;
  EXPECT_FALSE(patient.may_have_cost);
}

TEST_F(HttpProviderTest, NobodyWaitsPastTheDeadline) {
  deadline_ = sbx::async::after(milliseconds(500));
  const ProviderError late = error([&](Peer& peer, const Heard&) {
    peer.answer(503, "application/json", "{}", "Retry-After: 20\r\n");
  });
  EXPECT_EQ(late.tries, 1);
  EXPECT_TRUE(late.detail.ends_with(
      "; it wants a pause of 20 s; the request's time leaves none for another try"))
      << late.detail;
}

TEST_F(HttpProviderTest, TriesEnd) {
  const ProviderError busy =
      error([](Peer& peer, const Heard&) { peer.answer(500, "text/html", "<h1>no</h1>"); });
  EXPECT_EQ(busy.trouble, Trouble::kUnreachable);
  EXPECT_EQ(busy.tries, 3);
  EXPECT_TRUE(busy.detail.ends_with("; asked 3 times")) << busy.detail;
  EXPECT_EQ(heard_.size(), 3U);
}

TEST_F(HttpProviderTest, AWrongKeyIsSaidWithoutShowingIt) {
  const ProviderError wrong = error([](Peer& peer, const Heard& heard) {
    peer.answer(
        401, "application/json",
        R"({"error":{"message":"Incorrect API key: )" + heard.header("Authorization") + R"("}})");
  });
  EXPECT_EQ(wrong.trouble, Trouble::kKeyRefused);
  EXPECT_EQ(heard_.size(), 1U);
  EXPECT_FALSE(wrong.fix.empty());
}

TEST_F(HttpProviderTest, RefusalsAreNamedAndNotRepeated) {
  struct Case {
    int status;
    std::string body;
    Trouble trouble;
    std::string said;
  };
  for (const Case& each : {Case{404, R"({"error":{"message":"model x not found"}})",
                                Trouble::kModelUnknown, "model x not found"},
                           Case{413, "", Trouble::kTooLarge, "413"},
                           Case{400, R"({"error":"bad"})", Trouble::kRefused, "bad"},
                           Case{418, "", Trouble::kRefused, "418"}}) {
    const ProviderError refused = error(
        [&](Peer& peer, const Heard&) { peer.answer(each.status, "application/json", each.body); });
    EXPECT_EQ(refused.trouble, each.trouble);
    EXPECT_NE(refused.detail.find(each.said), std::string::npos) << refused.detail;
    EXPECT_EQ(heard_.size(), 1U);
    EXPECT_FALSE(refused.may_have_cost);
  }
}

TEST_F(HttpProviderTest, AnErrorInsideTheStreamEndsIt) {
  const ProviderError inside = error([](Peer& peer, const Heard&) {
    peer.start_stream();
    peer.event(text_chunk("x"));
    peer.event(R"({"error":{"message":"out of memory"}})");
  });
  EXPECT_EQ(inside.trouble, Trouble::kMalformed);
  EXPECT_NE(inside.detail.find("out of memory"), std::string::npos);
  EXPECT_TRUE(inside.may_have_cost);
}

TEST_F(HttpProviderTest, AnswersThatAreNoneAreMalformed) {
  for (const std::string body : {"", "{}", "<html>", "[]", R"({"choices":[]})"}) {
    EXPECT_EQ(error([&](Peer& peer, const Heard&) {
                peer.answer(200, "application/json", body);
              }).trouble,
              Trouble::kMalformed)
        << body;
  }
  EXPECT_EQ(error([&](Peer& peer, const Heard&) { peer.start_stream(); }).trouble,
            Trouble::kMalformed)
      << "an empty stream";
}

TEST_F(HttpProviderTest, AnAnswerOfAnotherKindIsSaidToBeOne) {
  struct Case {
    std::unique_ptr<Wire> (*wire)();
    std::string body;
    std::string said;
    bool is_foreign = true;
  };
  for (const Case& each :
       {Case{anthropic_wire, "<!DOCTYPE html>", "a page, not JSON"},
        Case{anthropic_wire, "", "is empty"},
        Case{anthropic_wire, R"({"content":[{"type":"te)", "cut, or is damaged", false},
        Case{anthropic_wire, R"({"choices":[]})", "none of Anthropic's kind"},
        Case{anthropic_wire, R"({"error":{}})", "the server reported an error", false},
        Case{openai_wire, "\n<html>", "a page, not JSON"},
        Case{openai_wire, "[]", "not JSON of a reply"},
        Case{openai_wire, R"({"choices":[{"mess)", "cut, or is damaged", false},
        Case{openai_wire, R"({"type":"message","content":[]})", "none of OpenAI's kind"}}) {
    wire_ = each.wire;
    const ProviderError other =
        error([&](Peer& peer, const Heard&) { peer.answer(200, "application/json", each.body); });
    EXPECT_NE(other.detail.find(each.said), std::string::npos) << other.detail;
    EXPECT_EQ(other.fix == "check kind and base_url in [provider]", each.is_foreign) << each.body;
    EXPECT_TRUE(other.may_have_cost);
  }
}

TEST_F(HttpProviderTest, AnAnswerThatIsTooLargeIsSaidToBe) {
  const std::string at_most(2 * kMaxReplyBytes - kPlain.size(), ' ');
  EXPECT_EQ(completion([&](Peer& peer, const Heard&) {
              peer.answer(200, "application/json", at_most + kPlain);
            }).text,
            "plain");
  for (auto* wire : {openai_wire, anthropic_wire}) {
    wire_ = wire;
    const ProviderError large = error([&](Peer& peer, const Heard&) {
      peer.answer(200, "application/json", at_most + " " + kPlain);
    });
    EXPECT_NE(large.detail.find("answer is larger than 2097152 bytes"), std::string::npos)
        << large.detail;
    EXPECT_TRUE(large.may_have_cost);
  }
}

TEST_F(HttpProviderTest, AStreamThatIsCalledPlainTextIsReadAsOne) {
  for (const std::string begin : {"", ": keep-alive\n\n", "\r\n", "event: message\n"}) {
    const Completion reply = completion([&](Peer& peer, const Heard&) {
      peer.answer(200, "text/plain",
                  begin + "data: " + text_chunk("a") + "\n\ndata: " + text_chunk("b") +
                      "\n\ndata: " + kStop + "\n\n");
    });
    EXPECT_EQ(reply.text, "ab") << begin;
    EXPECT_EQ(reply.finish, Finish::kStop);
  }
}

TEST_F(HttpProviderTest, RedirectsAreNotFollowed) {
  const ProviderError moved = error([&](Peer& peer, const Heard&) {
    peer.answer(302, "text/plain", "", "Location: http://127.0.0.1:1/v1/chat/completions\r\n");
  });
  EXPECT_EQ(moved.trouble, Trouble::kRefused);
}

TEST_F(HttpProviderTest, ASlowServerRunsIntoTheTimeout) {
  timeout_ = milliseconds(200);
  const ProviderError slow = error([](Peer& peer, const Heard&) {
    peer.start_stream();
    peer.event(text_chunk("x"));
    EXPECT_TRUE(peer.wait_until_gone());
  });
  EXPECT_EQ(slow.trouble, Trouble::kTimeout);
  EXPECT_TRUE(slow.may_have_cost);
  EXPECT_TRUE(slow.detail.ends_with("; not asked again, since this call may have been charged"))
      << slow.detail;
}

// It waits for a request in the clear, and answers no handshake: so no request was sent.
TEST_F(HttpProviderTest, WithoutAConnectionInTimeNothingCanHaveCostAnything) {
  timeout_ = milliseconds(200);
  ScriptedServer server([](Peer& /*peer*/, const Heard& /*heard*/) {});
  std::string url = server.url();
  url.replace(0, url.find(':'), "https");
  const CompletionResult result = ask_at(url + "/v1");
  const auto& error = std::get<ProviderError>(result);
  EXPECT_EQ(error.trouble, Trouble::kUnreachable);
  EXPECT_EQ(error.tries, 3);
  EXPECT_FALSE(error.may_have_cost);
  EXPECT_TRUE(server.heard().empty());
}

TEST_F(HttpProviderTest, CancellingClosesTheConnectionInTheMiddleOfAReply) {
  std::atomic<bool> gone = false;
  ScriptedServer server([&](Peer& peer, const Heard&) {
    peer.start_stream();
    peer.event(text_chunk("x"));
    gone = peer.wait_until_gone();
  });
  sbx::async::Loop loop;
  sbx::http::AsyncClient client(loop);
  HttpProvider provider(loop, client, openai_wire(),
                        {.info = {.kind = "openai", .model = "m", .origin = ""},
                         .base_url = server.url(),
                         .random = [] { return 0.0; }});
  // Cancelled when the request has been heard.
  struct Cancelled {
    static Task<void> run(sbx::async::Loop& loop, Provider& provider, ScriptedServer& server,
                          CompletionResult& result) {
      Cancellation cancellation;
      sbx::async::TaskGroup group(loop);
      group.spawn(cancel_when_heard(loop, server, cancellation));
      CompletionRequest request;
      request.messages.push_back({.text = "hi"});
      result = co_await provider.complete(std::move(request), &cancellation);
      (void)co_await group.join();
    }
    static Task<void> cancel_when_heard(sbx::async::Loop& loop, ScriptedServer& server,
                                        Cancellation& cancellation) {
      while (server.heard().empty()) {
        (void)co_await loop.sleep_until(sbx::async::after(milliseconds(1)));
      }
      cancellation.cancel();
    }
  };
  CompletionResult result;
  sbx::async::test::run_on(loop, Cancelled::run(loop, provider, server, result));
  ASSERT_TRUE(std::holds_alternative<ProviderError>(result));
  EXPECT_EQ(std::get<ProviderError>(result).trouble, Trouble::kCancelled);
  EXPECT_TRUE(std::get<ProviderError>(result).may_have_cost);
}

TEST_F(HttpProviderTest, NobodyListeningIsSaidAfterAllTries) {
  const CompletionResult result = ask_at("http://127.0.0.1:1/v1");
  const auto& error = std::get<ProviderError>(result);
  EXPECT_EQ(error.trouble, Trouble::kUnreachable);
  EXPECT_EQ(error.tries, 3);
  EXPECT_FALSE(error.may_have_cost);
}

}  // namespace
}  // namespace agentd::providers
