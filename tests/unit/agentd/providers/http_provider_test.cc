// Replies of a provider: streamed, plain, cut.
#include "agentd/providers/http_provider.h"

#include "tests/unit/agentd/providers/http_provider_fixture.h"

namespace agentd::providers {
namespace {

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
