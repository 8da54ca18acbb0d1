// The dialects of model servers, as text.
#include "agentd/providers/wire.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace agentd::providers {
namespace {

using Json = nlohmann::json;

CompletionRequest conversation() {
  return {
      .messages = {{.role = Role::kSystem, .text = "be brief"},
                   {.role = Role::kUser, .text = "hi"},
                   {.role = Role::kAssistant,
                    .text = "",
                    .tool_calls = {{"c1", "run_code", R"({"code":"1"})"}, {"c2", "f", "oops"}}},
                   {.role = Role::kTool, .text = "one", .tool_call_id = "c1"},
                   {.role = Role::kTool, .text = "bad", .tool_call_id = "c2", .is_error = true}},
      .tools = {{"run_code", "Runs code.", R"({"type":"object"})"}},
      .max_tokens = 99};
}

TEST(OpenAiWire, WritesWhatTheServersExpect) {
  const auto wire = openai_wire();
  const Json body = Json::parse(wire->body(conversation(), {.model = "m", .temperature = 0.5}));
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["max_tokens"], 99);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_EQ(body["messages"][0], (Json{{"role", "system"}, {"content", "be brief"}}));
  EXPECT_EQ(body["messages"][2]["content"], nullptr);
  EXPECT_EQ(body["messages"][2]["tool_calls"][0]["function"]["arguments"], R"({"code":"1"})");
  EXPECT_EQ(body["messages"][3],
            (Json{{"role", "tool"}, {"content", "one"}, {"tool_call_id", "c1"}}));
  EXPECT_EQ(body["tools"][0]["function"]["parameters"]["type"], "object");
  const Json plain = Json::parse(wire->body(
      {}, {.model = "m", .stream = false, .token_limit_field = "max_completion_tokens"}));
  EXPECT_EQ(plain["stream"], false);
  EXPECT_FALSE(plain.contains("stream_options"));
  EXPECT_FALSE(plain.contains("tools"));
  EXPECT_EQ(plain["max_completion_tokens"], 2048);
}

TEST(AnthropicWire, WritesWhatTheServerExpects) {
  const auto wire = anthropic_wire();
  const Json body = Json::parse(wire->body(conversation(), {.model = "m"}));
  EXPECT_EQ(body["system"], "be brief");
  ASSERT_EQ(body["messages"].size(), 3U) << "roles alternate";
  EXPECT_EQ(body["messages"][1]["content"][0]["input"]["code"], "1");
  EXPECT_EQ(body["messages"][1]["content"][1]["input"]["text"], "oops") << "an object, always";
  EXPECT_EQ(body["messages"][2]["role"], "user");
  EXPECT_EQ(body["messages"][2]["content"][1]["is_error"], true);
  EXPECT_EQ(body["tools"][0]["input_schema"]["type"], "object");
  const auto headers = wire->headers(redact::Secret("k"));
  EXPECT_EQ(headers[0], (std::pair<std::string, std::string>{"x-api-key", "k"}));
}

TEST(AnthropicWire, SendsNoEmptyMessages) {
  const CompletionRequest request{.messages = {{.role = Role::kUser, .text = "hi"},
                                               {.role = Role::kAssistant, .text = " \n"},
                                               {.role = Role::kUser, .text = "again"}}};
  const Json body = Json::parse(anthropic_wire()->body(request, {.model = "m"}));
  ASSERT_EQ(body["messages"].size(), 3U);
  EXPECT_EQ(body["messages"][1]["content"][0]["text"], "(nothing)");
}

Completion stream(const std::unique_ptr<Wire>& wire, const std::vector<std::string>& events) {
  const auto accumulator = wire->accumulator();
  for (const std::string& data : events) {
    if (!accumulator->event({"message", data})) break;
  }
  EXPECT_FALSE(accumulator->error()) << *accumulator->error();
  return accumulator->take();
}

TEST(OpenAiWire, CollectsAStreamWithTheOdditiesOfRealServers) {
  const Completion completion = stream(
      openai_wire(),
      {R"({"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]})",
       R"({"choices":[{"delta":{"content":"he"}}],"usage":null})", R"({"choices":[{"delta":{}}]})",
       R"({"object":"chunk"})", R"({"choices":[{"delta":{"content":"llo"},"finish_reason":null}]})",
       R"({"choices":[{"delta":{},"finish_reason":"stop"}]})",
       R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}})", "[DONE]"});
  EXPECT_EQ(completion.text, "hello");
  EXPECT_EQ(completion.finish, Finish::kStop);
  ASSERT_TRUE(completion.usage);
  EXPECT_EQ(completion.usage->input_tokens, 5);
  EXPECT_EQ(completion.usage->output_tokens, 2);
}

TEST(OpenAiWire, CollectsToolCallsInPiecesAndInParallel) {
  const Completion completion = stream(
      openai_wire(),
      {R"({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}}]})",
       R"({"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":{"x":1}}}]}}]})",
       R"({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"y\""}}]}}]})",
       R"({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":2}"}}]},"finish_reason":"tool_calls"}]})"});
  ASSERT_EQ(completion.tool_calls.size(), 2U);
  EXPECT_EQ(completion.tool_calls[0].id + completion.tool_calls[0].name, "af");
  EXPECT_EQ(completion.tool_calls[0].arguments, R"({"y":2})");
  EXPECT_EQ(completion.tool_calls[1].arguments, R"({"x":1})") << "an object from some servers";
  EXPECT_EQ(completion.finish, Finish::kToolCalls);
}

TEST(OpenAiWire, CollectsToolCallsWithoutIndexOrId) {
  const Completion with_ids = stream(
      openai_wire(),
      {R"({"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]})",
       R"({"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"[]"}}]},"finish_reason":"tool_calls"}]})"});
  ASSERT_EQ(with_ids.tool_calls.size(), 2U);
  EXPECT_EQ(with_ids.tool_calls[1].id, "b");
  EXPECT_EQ(with_ids.tool_calls[1].arguments, "[]");
  const Completion without = stream(
      openai_wire(),
      {R"({"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]})"});
  ASSERT_EQ(without.tool_calls.size(), 2U);
  EXPECT_EQ(without.tool_calls[0].id, "call_1");
  EXPECT_EQ(without.tool_calls[1].id, "call_2");
}

TEST(OpenAiWire, ACallOfNoNameIsOneAllTheSame) {
  const Completion completion = stream(
      openai_wire(),
      {R"({"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"","arguments":"{}"}},{}]},"finish_reason":"tool_calls"}]})"});
  ASSERT_EQ(completion.tool_calls.size(), 1U);
  EXPECT_EQ(completion.tool_calls[0].id + completion.tool_calls[0].name, "aunnamed");
}

TEST(OpenAiWire, ReadsContentInPartsWithoutTheThoughts) {
  const Completion completion = stream(
      openai_wire(),
      {R"({"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"he"}]}}]})",
       R"({"choices":[{"delta":{"content":"llo"},"finish_reason":"stop"}]})"});
  EXPECT_EQ(completion.text, "hello");
}

TEST(OpenAiWire, AStreamThatJustEndsIsCut) {
  const Completion completion =
      stream(openai_wire(), {R"({"choices":[{"delta":{"content":"he"}}]})"});
  EXPECT_EQ(completion.finish, Finish::kCut);
  EXPECT_EQ(completion.text, "he");
}

TEST(AnthropicWire, CollectsAStream) {
  const Completion completion = stream(
      anthropic_wire(),
      {R"({"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}})",
       R"({"type":"ping"})",
       R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})",
       R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}})",
       R"({"type":"content_block_stop","index":0})", R"({"type":"something_new"})",
       R"({"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}})",
       R"({"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}})",
       R"({"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}})",
       R"({"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}})",
       R"({"type":"message_stop"})"});
  EXPECT_EQ(completion.text, "hello");
  ASSERT_EQ(completion.tool_calls.size(), 1U);
  EXPECT_EQ(completion.tool_calls[0].arguments, R"({"a":1})");
  EXPECT_EQ(completion.finish, Finish::kToolCalls);
  ASSERT_TRUE(completion.usage);
  EXPECT_EQ(completion.usage->input_tokens, 15);
  EXPECT_EQ(completion.usage->output_tokens, 7);
}

TEST(Wires, ReadPlainAnswersToo) {
  const auto openai = openai_wire()->accumulator();
  openai->whole(
      R"({"choices":[{"message":{"content":"x","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2}})");
  EXPECT_TRUE(openai->complete());
  const Completion first = openai->take();
  EXPECT_EQ(first.finish, Finish::kLength);
  EXPECT_EQ(first.tool_calls.size(), 1U);
  const auto anthropic = anthropic_wire()->accumulator();
  anthropic->whole(
      R"({"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"f","input":{"k":1}}],"stop_reason":"max_tokens","usage":{"input_tokens":1,"output_tokens":2}})");
  const Completion second = anthropic->take();
  EXPECT_EQ(second.finish, Finish::kLength);
  EXPECT_EQ(second.tool_calls.at(0).arguments, R"({"k":1})");
}

TEST(Wires, CallsBeyondTheMostAreLeftOutAndTheReplyIsTakenWithItsUsage) {
  for (const std::size_t count : {kMaxToolCalls, kMaxToolCalls + 4}) {
    std::string of_openai;
    std::string of_anthropic;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string id = std::to_string(i);
      of_openai += (i == 0 ? "" : ",") + std::string(R"({"id":"c)") + id +
                   R"(","function":{"name":"f","arguments":"{}"}})";
      of_anthropic += R"(,{"type":"tool_use","id":"c)" + id + R"(","name":"f","input":{}})";
    }
    const auto openai = openai_wire()->accumulator();
    openai->whole(
        R"({"choices":[{"message":{"content":"x","tool_calls":[)" + of_openai +
        R"(]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2}})");
    const auto anthropic = anthropic_wire()->accumulator();
    anthropic->whole(R"({"content":[{"type":"text","text":"x"})" + of_anthropic +
                     R"(],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}})");
    for (const auto& accumulator : {openai.get(), anthropic.get()}) {
      ASSERT_FALSE(accumulator->error()) << *accumulator->error();
      const Completion completion = accumulator->take();
      ASSERT_EQ(completion.tool_calls.size(), kMaxToolCalls);
      EXPECT_EQ(completion.tool_calls.back().id, "c15");
      EXPECT_EQ(completion.calls_dropped, count > kMaxToolCalls);
      ASSERT_TRUE(completion.usage);
      EXPECT_EQ(completion.usage->input_tokens, 3);
    }
  }
}

TEST(Wires, FiguresThatAreNoneAreNegativeWhoeverTellsThem) {
  for (const std::string figure : {"1e30", "100.5", "\"100\"", "-7", "[]"}) {
    const auto openai = openai_wire()->accumulator();
    openai->whole(R"({"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":)"
                  R"({"prompt_tokens":)" +
                  figure + R"(,"completion_tokens":2}})");
    const auto anthropic = anthropic_wire()->accumulator();
    anthropic->whole(R"({"content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":)"
                     R"({"input_tokens":)" +
                     figure + R"(,"output_tokens":2}})");
    for (const auto& accumulator : {openai.get(), anthropic.get()}) {
      const Completion completion = accumulator->take();
      ASSERT_TRUE(completion.usage) << figure;
      EXPECT_LT(completion.usage->input_tokens, 0) << figure;
      EXPECT_EQ(completion.usage->output_tokens, 2);
    }
  }
}

TEST(Wires, SurviveAnswersThatAreNone) {
  const std::vector<std::string> odd = {
      "",
      "null",
      "[]",
      "7",
      "{",
      "\"x\"",
      "{}",
      R"({"choices":7})",
      R"({"choices":[7]})",
      R"({"choices":[{"delta":7,"finish_reason":7}]})",
      R"({"choices":[{"delta":{"content":7,"tool_calls":[7,{"index":-1},{"index":99999999999}]}}]})",
      R"({"choices":[{"message":{"tool_calls":{"a":1}}}],"usage":[1]})",
      R"({"choices":[],"usage":{"prompt_tokens":1e300,"completion_tokens":"x"}})",
      R"({"type":"content_block_delta","index":-9223372036854775808,"delta":{"type":"input_json_delta"}})",
      R"({"type":"content_block_start","index":18446744073709551615,"content_block":{"type":"tool_use"}})",
      R"({"type":"message_start","message":{"usage":{"input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807}}})",
      R"({"content":[7,{"type":7}],"usage":7,"stop_reason":[]})",
      std::string(10000, '[')};
  for (const auto& wire : {openai_wire(), anthropic_wire()}) {
    for (const std::string& text : odd) {
      const auto streamed = wire->accumulator();
      (void)streamed->event({"message", text});
      (void)streamed->take();
      const auto plain = wire->accumulator();
      plain->whole(text);
      (void)plain->take();
    }
  }
}

TEST(Wires, ReportErrorsInsideAStream) {
  const auto openai = openai_wire()->accumulator();
  EXPECT_FALSE(openai->event({"message", R"({"error":{"message":"overloaded","code":503}})"}));
  EXPECT_EQ(openai->error(), "overloaded");
  const auto anthropic = anthropic_wire()->accumulator();
  EXPECT_FALSE(anthropic->event(
      {"error", R"({"type":"error","error":{"type":"overloaded_error","message":"busy"}})"}));
  EXPECT_EQ(anthropic->error(), "busy");
}

TEST(Wires, AReplyHasALimit) {
  const auto accumulator = openai_wire()->accumulator();
  const std::string chunk =
      R"({"choices":[{"delta":{"content":")" + std::string(65536, 'x') + R"("}}]})";
  int chunks = 0;
  while (accumulator->event({"message", chunk})) ASSERT_LT(++chunks, 100);
  EXPECT_TRUE(accumulator->error());
}

TEST(ErrorMessages, AreFoundWhereverServersPutThem) {
  EXPECT_EQ(error_message(R"({"error":{"message":"a","code":429}})"), "a");
  EXPECT_EQ(error_message(R"({"error":"b"})"), "b");
  EXPECT_EQ(error_message(R"({"message":"c"})"), "c");
  EXPECT_EQ(error_message(R"({"detail":"d"})"), "d");
  EXPECT_EQ(error_message(R"({"error":{"code":500}})"), "");
  EXPECT_EQ(error_message(R"({"error":{"message":null},"message":"x"})"), "");
  EXPECT_EQ(error_message(""), "");
  EXPECT_EQ(error_message("<html>"), "");
  const std::string words = std::string(290, 'e') + " sk-a-key-that-is-quoted";
  EXPECT_EQ(error_message("{\"error\":\"" + words + "\"}"), std::string(290, 'e'))
      << "cut between words: half a key is found by nobody";
  EXPECT_EQ(error_message("{\"error\":\"" + std::string(1000, 'e') + "\"}"), "");
}

}  // namespace
}  // namespace agentd::providers
