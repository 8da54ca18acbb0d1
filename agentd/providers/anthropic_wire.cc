// Anthropic's messages.
#include <nlohmann/json.hpp>

#include "agentd/providers/json_access.h"
#include "agentd/providers/wire.h"

namespace agentd::providers {
namespace {

using Json = nlohmann::ordered_json;

// The model's own arguments, sent back to it: an object there, whatever text it had written.
Json input_json(const ToolCall& call) {
  Json input = Json::parse(call.arguments, nullptr, false);
  if (!input.is_object()) input = Json{{"text", call.arguments}};
  return input;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Json content_of(const Message& message) {
  if (message.role == Role::kTool) {
    return Json::array({{{"type", "tool_result"},
                         {"tool_use_id", message.tool_call_id},
                         {"content", message.text},
                         {"is_error", message.is_error}}});
  }
  Json content = Json::array();
  if (!is_blank(message.text)) content.push_back({{"type", "text"}, {"text", message.text}});
  for (const ToolCall& call : message.tool_calls) {
    content.push_back(
        {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input_json(call)}});
  }
  // Messages and texts of nothing are refused there.
  if (content.empty()) content.push_back({{"type", "text"}, {"text", "(nothing)"}});
  return content;
}

// Roles alternate there: results of several tools are one message of the user.
Json messages_json(const std::vector<Message>& messages) {
  Json list = Json::array();
  for (const Message& message : messages) {
    if (message.role == Role::kSystem) continue;
    const char* role = message.role == Role::kAssistant ? "assistant" : "user";
    Json content = content_of(message);
    if (!list.empty() && list.back()["role"] == role) {
      for (Json& part : content) list.back()["content"].push_back(std::move(part));
    } else {
      list.push_back({{"role", role}, {"content", std::move(content)}});
    }
  }
  return list;
}

std::string system_text(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& message : messages) {
    if (message.role != Role::kSystem) continue;
    if (!text.empty()) text += "\n\n";
    text += message.text;
  }
  return text;
}

Finish anthropic_finish(std::string_view reason) {
  if (reason == "end_turn" || reason == "stop_sequence") return Finish::kStop;
  if (reason == "max_tokens" || reason == "model_context_window_exceeded") return Finish::kLength;
  if (reason == "tool_use") return Finish::kToolCalls;
  if (reason == "refusal") return Finish::kFiltered;
  return Finish::kOther;
}

class AnthropicAccumulator final : public Accumulator {
 public:
  bool event(const SseEvent& event) override {
    const Json json = Json::parse(event.data, nullptr, false);
    if (!json.is_object()) {
      fail_not_json(event.data);
      return false;
    }
    const std::string type = text_of(member(json, "type"));
    if (type == "error") return report(event.data);
    if (type == "message_start") {
      begun_ = true;
      if (const Json* message = member(json, "message")) take_usage(member(*message, "usage"));
    } else if (type == "content_block_start") {
      start_block(json);
    } else if (type == "content_block_delta") {
      continue_block(json);
    } else if (type == "message_delta") {
      if (const Json* delta = member(json, "delta")) take_stop(*delta);
      take_usage(member(json, "usage"));
    } else if (type == "message_stop") {
      complete_ = true;
      return false;
    }
    return !error();  // ping and types of the future: nothing to do
  }

  void whole(std::string_view body) override {
    const Json json = Json::parse(body, nullptr, false);
    if (!json.is_object()) return fail_not_json(body);
    const Json* content = member(json, "content");
    if (content == nullptr || !content->is_array()) {
      const std::string message = error_message(body);
      if (!message.empty() || member(json, "error") != nullptr) {
        (void)report(body);
      } else {
        fail_foreign("the answer has no content: it is none of Anthropic's kind");
      }
      return;
    }
    for (std::size_t i = 0; i < content->size(); ++i) take_block(i, (*content)[i]);
    take_stop(json);
    take_usage(member(json, "usage"));
    begun_ = true;
    complete_ = !error();
  }

 private:
  bool report(std::string_view body) {
    const std::string message = error_message(body);
    fail(message.empty() ? "the server reported an error" : message);
    return false;
  }

  void start_block(const Json& json) {
    const Json* block = member(json, "content_block");
    if (block != nullptr) take_block(index_of(json), *block);
  }

  void take_block(std::size_t index, const Json& block) {
    const std::string type = text_of(member(block, "type"));
    if (type == "text") add_text(text_of(member(block, "text")));
    if (type != "tool_use") return;
    ToolCall* call = tool_call(index);
    if (call != nullptr) {
      call->id = text_of(member(block, "id"));
      call->name = text_of(member(block, "name"));
    }
    // In a stream an empty object stands here, and the text follows in pieces.
    const Json* input = member(block, "input");
    if (input != nullptr && !input->empty()) {
      add_arguments(call, dump(*input));
    }
  }

  void continue_block(const Json& json) {
    const Json* delta = member(json, "delta");
    if (delta == nullptr) return;
    const std::string type = text_of(member(*delta, "type"));
    if (type == "text_delta") add_text(text_of(member(*delta, "text")));
    if (type != "input_json_delta") return;
    add_arguments(tool_call(index_of(json)), text_of(member(*delta, "partial_json")));
  }

  static std::size_t index_of(const Json& json) {
    return static_cast<std::size_t>(number_of(member(json, "index")));
  }

  void take_stop(const Json& json) {
    const std::string reason = text_of(member(json, "stop_reason"));
    if (reason.empty()) return;
    completion_.finish_reason = reason;
    completion_.finish = anthropic_finish(reason);
    complete_ = true;
  }

  void take_usage(const Json* usage) {
    if (usage == nullptr || !usage->is_object()) return;
    Usage sum = completion_.usage.value_or(Usage{});
    if (member(*usage, "input_tokens") != nullptr) sum.input_tokens = input_of(*usage);
    if (const Json* output = member(*usage, "output_tokens")) sum.output_tokens = count_of(output);
    completion_.usage = sum;
  }

  // -1 when one of its parts is none that can be billed.
  static std::int64_t input_of(const Json& usage) {
    std::int64_t sum = count_of(member(usage, "input_tokens"));
    for (const char* name : {"cache_read_input_tokens", "cache_creation_input_tokens"}) {
      const Json* part = member(usage, name);
      if (part == nullptr) continue;
      const std::int64_t count = count_of(part);
      sum = sum < 0 || count < 0 ? -1 : sum + count;
    }
    return sum;
  }
};

class AnthropicWire final : public Wire {
 public:
  std::string path() const override { return "/messages"; }

  std::vector<std::pair<std::string, std::string>> headers(
      const redact::Secret& key) const override {
    return {{"x-api-key", std::string(key.reveal())}, {"anthropic-version", "2023-06-01"}};
  }

  std::string body(const CompletionRequest& request, const WireSettings& settings) const override {
    Json json{{"model", settings.model},
              {"max_tokens", request.max_tokens},
              {"temperature", settings.temperature},
              {"messages", messages_json(request.messages)}};
    if (std::string system = system_text(request.messages); !system.empty()) {
      json["system"] = std::move(system);
    }
    for (const Tool& tool : request.tools) {
      json["tools"].push_back({{"name", tool.name},
                               {"description", tool.description},
                               {"input_schema", Json::parse(tool.schema_json)}});
    }
    json["stream"] = settings.stream;
    return dump(json);
  }

  std::unique_ptr<Accumulator> accumulator() const override {
    return std::make_unique<AnthropicAccumulator>();
  }
};

}  // namespace

std::unique_ptr<Wire> anthropic_wire() {
  return std::make_unique<AnthropicWire>();
}

}  // namespace agentd::providers
