// The provider against a server that plays what real ones do.
#include "agentd/providers/http_provider.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/agent/support/scripted_server.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::providers {
namespace {

using sbx::async::Cancellation;
using sbx::async::Task;
using std::chrono::milliseconds;
using test::Heard;
using test::Peer;
using test::ScriptedServer;

constexpr char kKey[] = "sk-test-0123456789abcdef";

std::string text_chunk(const std::string& text) {
  return R"({"choices":[{"delta":{"content":")" + text + R"("}}]})";
}
const std::string kStop = R"({"choices":[{"delta":{},"finish_reason":"stop"}]})";
const std::string kPlain =
    R"({"choices":[{"message":{"content":"plain"},"finish_reason":"stop"}]})";

class HttpProviderTest : public ::testing::Test {
 protected:
  // Plays `script` and asks once. `cancel_when`, if given, is called on the loop each millisecond
  // until it says true; then the call is cancelled.
  CompletionResult ask(const ScriptedServer::Script& script) {
    ScriptedServer server(script);
    CompletionResult result = ask_at(server.url() + "/v1");
    heard_ = server.heard();
    return result;
  }

  CompletionResult ask_at(const std::string& base_url) {
    sbx::async::Loop loop;
    sbx::http::AsyncClient client(loop);
    HttpProviderOptions options{
        .info = {.kind = "openai", .model = "m", .origin = base_url},
        .base_url = base_url,
        .key = redact::Secret(kKey),
        .wire = {.model = "m"},
        .timeout = timeout_,
        .retry = {.tries = 3, .base = milliseconds(2), .cap = milliseconds(4)},
        .random = [] { return 0.5; }};
    HttpProvider provider(loop, client, wire_(), std::move(options));
    CompletionResult result;
    CompletionRequest request{.messages = {{.text = "hi"}}};
    request.deadline = deadline_;
    sbx::async::test::run_on(loop, into(provider, std::move(request), &cancellation_, result));
    return result;
  }

  static Task<void> into(Provider& provider, CompletionRequest request,
                         const Cancellation* cancellation, CompletionResult& result) {
    result = co_await provider.complete(std::move(request), cancellation);
  }

  Completion completion(const ScriptedServer::Script& script) {
    const CompletionResult result = ask(script);
    if (const auto* error = std::get_if<ProviderError>(&result)) {
      ADD_FAILURE() << error->detail;
      return {};
    }
    return std::get<Completion>(result);
  }

  ProviderError error(const ScriptedServer::Script& script) {
    const CompletionResult result = ask(script);
    if (std::holds_alternative<Completion>(result)) {
      ADD_FAILURE() << "a completion: " << std::get<Completion>(result).text;
      return {};
    }
    const auto& error = std::get<ProviderError>(result);
    EXPECT_EQ((error.detail + error.fix).find("0123456789abcdef"), std::string::npos);
    return error;
  }

  std::unique_ptr<Wire> (*wire_)() = openai_wire;
  milliseconds timeout_{30'000};
  sbx::async::Deadline deadline_ = sbx::async::kNoDeadline;
  Cancellation cancellation_;
  std::vector<Heard> heard_;
};

TEST_F(HttpProviderTest, StreamsAReply) {
  const Completion reply = completion([](Peer& peer, const Heard&) {
    peer.start_stream();
    peer.event(text_chunk("hel"));
    peer.event(text_chunk("lo"));
    peer.event(kStop);
    peer.event(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}})");
    peer.event("[DONE]");
  });
  EXPECT_EQ(reply.text, "hello");
  EXPECT_EQ(reply.finish, Finish::kStop);
  EXPECT_EQ(reply.usage->input_tokens, 7);
  EXPECT_EQ(reply.tries, 1);
  ASSERT_EQ(heard_.size(), 1U);
  EXPECT_EQ(heard_[0].line, "POST /v1/chat/completions HTTP/1.1");
  EXPECT_EQ(heard_[0].header("Authorization"), std::string("Bearer ") + kKey);
  EXPECT_EQ(heard_[0].body.find("0123456789abcdef"), std::string::npos);
}

TEST_F(HttpProviderTest, DataMayBeSplitAnywhereBetweenReads) {
  const Completion reply = completion([](Peer& peer, const Heard&) {
    peer.start_stream();
    const std::string text = ": keep-alive\n\ndata: " + text_chunk("héllo") +
                             "\n\n: keep-alive\r\n\r\ndata: " + kStop + "\n\ndata: [DONE]\n\n";
    for (const char c : text) peer.send({&c, 1});
  });
  EXPECT_EQ(reply.text, "héllo");
  EXPECT_EQ(reply.finish, Finish::kStop);
}

TEST_F(HttpProviderTest, AMissingDoneIsNoMatter) {
  const Completion reply = completion([](Peer& peer, const Heard&) {
    peer.start_stream();
    peer.event(text_chunk("x"));
    peer.send("data: " + kStop);  // nor the last blank line
  });
  EXPECT_EQ(reply.finish, Finish::kStop);
}

TEST_F(HttpProviderTest, AServerThatDoesNotCloseAfterDoneIsNotWaitedFor) {
  const Completion reply = completion([](Peer& peer, const Heard&) {
    peer.start_stream();
    peer.event(text_chunk("x"));
    peer.event("[DONE]");
    EXPECT_TRUE(peer.wait_until_gone());
  });
  EXPECT_EQ(reply.text, "x");
  EXPECT_NE(reply.finish, Finish::kCut);
}

TEST_F(HttpProviderTest, WhatComesBehindDoneIsNotLookedAt) {
  const Completion reply = completion([](Peer& peer, const Heard&) {
    peer.start_stream();
    peer.send("data: " + text_chunk("x") + "\n\ndata: [DONE]\n\ndata: {\"half");
    EXPECT_TRUE(peer.wait_until_gone());
  });
  EXPECT_EQ(reply.text, "x");
}

TEST_F(HttpProviderTest, APlainAnswerToARequestForAStreamIsRead) {
  const Completion reply =
      completion([](Peer& peer, const Heard&) { peer.answer(200, "application/json", kPlain); });
  EXPECT_EQ(reply.text, "plain");
}

TEST_F(HttpProviderTest, AConnectionThatBreaksInTheMiddleGivesACutReplyAndNoSecondTry) {
  const Completion reply = completion([](Peer& peer, const Heard&) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n");
    peer.event(text_chunk("half"));
    peer.close();
  });
  EXPECT_EQ(reply.text, "half");
  EXPECT_EQ(reply.finish, Finish::kCut);
  EXPECT_EQ(heard_.size(), 1U);
}

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
  EXPECT_FALSE(patient.may_have_cost);
}

TEST_F(HttpProviderTest, NobodyWaitsPastTheDeadline) {
  deadline_ = sbx::async::after(milliseconds(500));
  const ProviderError late = error([&](Peer& peer, const Heard&) {
    peer.answer(503, "application/json", "{}", "Retry-After: 20\r\n");
  });
  EXPECT_EQ(late.tries, 1);
}

TEST_F(HttpProviderTest, TriesEnd) {
  const ProviderError busy =
      error([](Peer& peer, const Heard&) { peer.answer(500, "text/html", "<h1>no</h1>"); });
  EXPECT_EQ(busy.trouble, Trouble::kUnreachable);
  EXPECT_EQ(busy.tries, 3);
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

TEST_F(HttpProviderTest, AServerThatGoesOnPastTheTokensItWasAllowedIsCutOff) {
  std::atomic<bool> gone = false;
  const Completion reply = completion([&](Peer& peer, const Heard&) {
    peer.start_stream();
    for (int i = 0; i < 200; ++i) peer.event(text_chunk(std::string(1000, 'x')));
    gone = peer.wait_until_gone();
  });
  EXPECT_TRUE(gone);
  EXPECT_EQ(reply.finish, Finish::kLength);
  EXPECT_LE(reply.text.size(), 2048 * kMaxBytesPerToken);
  EXPECT_FALSE(reply.usage) << "billed as reserved";
}

// Its first event counts one token of output, its last one all: without that nothing is known.
TEST_F(HttpProviderTest, AReplyThatIsCutHasNoUsage) {
  wire_ = anthropic_wire;
  const Completion reply = completion([](Peer& peer, const Heard&) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n");
    peer.event(
        R"({"type":"message_start","message":{"usage":{"input_tokens":4,"output_tokens":1}}})");
    peer.event(R"({"type":"content_block_delta","index":0,)"
               R"("delta":{"type":"text_delta","text":"a long rep"}})");
    peer.close();
  });
  EXPECT_EQ(reply.text, "a long rep");
  EXPECT_EQ(reply.finish, Finish::kCut);
  EXPECT_FALSE(reply.usage);
}

TEST_F(HttpProviderTest, SpeaksAnthropicToo) {
  wire_ = anthropic_wire;
  const Completion reply = completion([](Peer& peer, const Heard& heard) {
    EXPECT_EQ(heard.header("x-api-key"), kKey);
    peer.start_stream();
    peer.send(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":"
        "{\"input_tokens\":4,\"output_tokens\":1}}}\n\n");
    peer.send(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
        "\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n");
    peer.send(
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":"
        "{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n");
    peer.send("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
  });
  EXPECT_EQ(reply.text, "hi");
  EXPECT_EQ(reply.usage->output_tokens, 3);
  EXPECT_EQ(heard_[0].line, "POST /v1/messages HTTP/1.1");
}

}  // namespace
}  // namespace agentd::providers
