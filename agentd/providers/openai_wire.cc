// OpenAI's chat completions, as OpenAI, Groq, vLLM, llama.cpp and Ollama speak them.
#include <nlohmann/json.hpp>

#include "agentd/providers/json_access.h"
#include "agentd/providers/wire.h"

namespace agentd::providers {
namespace {

using Json = nlohmann::ordered_json;

Json message_json(const Message& message) {
  constexpr const char* kRoles[] = {"system", "user", "assistant", "tool"};
  Json json{{"role", kRoles[static_cast<std::size_t>(message.role)]}, {"content", message.text}};
  if (message.role == Role::kTool) json["tool_call_id"] = message.tool_call_id;
  if (message.tool_calls.empty()) return json;
  if (message.text.empty()) json["content"] = nullptr;
  for (const ToolCall& call : message.tool_calls) {
    json["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return json;
}

Finish openai_finish(std::string_view reason) {
  if (reason == "stop") return Finish::kStop;
  if (reason == "length") return Finish::kLength;
  if (reason == "tool_calls" || reason == "function_call") return Finish::kToolCalls;
  if (reason == "content_filter") return Finish::kFiltered;
  return Finish::kOther;
}

// A text by the book; from some servers a list of parts, of which those without text are thoughts.
std::string content_text(const Json* content) {
  if (content == nullptr || !content->is_array()) return text_of(content);
  std::string text;
  for (const Json& part : *content) text += text_of(member(part, "text"));
  return text;
}

class OpenAiAccumulator final : public Accumulator {
 public:
  bool event(const SseEvent& event) override {
    if (event.data == "[DONE]") {
      // Some servers never say why they stopped; this says that they did.
      complete_ = true;
      return false;
    }
    return take_in(event.data, "delta");
  }

  void whole(std::string_view body) override {
    if (take_in(body, "message")) complete_ = true;
    if (!error() && !begun())
      fail_foreign("the answer has no choices: it is none of OpenAI's kind");
  }

 private:
  // False when there was an error.
  bool take_in(std::string_view text, const char* part) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) {
      fail_not_json(text);
      return false;
    }
    if (member(json, "error") != nullptr) {
      const std::string message = error_message(text);
      fail(message.empty() ? "the server reported an error" : message);
      return false;
    }
    take_usage(member(json, "usage"));
    if (const Json* extra = member(json, "x_groq")) take_usage(member(*extra, "usage"));
    const Json* choices = member(json, "choices");
    // The chunk with the usage has an empty list of them.
    if (choices == nullptr || !choices->is_array() || choices->empty()) return !error();
    const Json& choice = choices->front();
    if (const Json* message = member(choice, part)) take_message(*message);
    if (const std::string reason = text_of(member(choice, "finish_reason")); !reason.empty()) {
      completion_.finish_reason = reason;
      completion_.finish = openai_finish(reason);
      complete_ = true;
    }
    return !error();
  }

  void take_message(const Json& message) {
    begun_ = true;
    add_text(content_text(member(message, "content")));
    add_text(text_of(member(message, "refusal")));
    const Json* calls = member(message, "tool_calls");
    if (calls == nullptr || !calls->is_array()) return;
    for (std::size_t i = 0; i < calls->size(); ++i) take_call((*calls)[i], i);
  }

  // Of a call without an index: servers that leave it out send each call whole, with its id.
  [[nodiscard]] std::size_t place_of(const Json& json, std::size_t position) const {
    const std::vector<ToolCall>& calls = completion_.tool_calls;
    const std::string id = text_of(member(json, "id"));
    const bool is_next = position < calls.size() && !id.empty() && !calls[position].id.empty() &&
                         calls[position].id != id;
    return is_next ? calls.size() : position;
  }

  void take_call(const Json& json, std::size_t position) {
    const Json* index = member(json, "index");
    const bool has_index = index != nullptr && index->is_number_unsigned();
    ToolCall* call = tool_call(has_index ? index->get<std::size_t>() : place_of(json, position));
    const Json* function = member(json, "function");
    // Whole in the first piece; some servers repeat them in each.
    if (call != nullptr && call->id.empty()) call->id = text_of(member(json, "id"));
    if (function == nullptr) return;
    if (call != nullptr && call->name.empty()) call->name = text_of(member(*function, "name"));
    const Json* arguments = member(*function, "arguments");
    if (arguments == nullptr) return;
    // A text by the book; an object from some servers.
    add_arguments(call, arguments->is_string() ? arguments->get<std::string>() : dump(*arguments));
  }

  void take_usage(const Json* usage) {
    if (usage == nullptr) return;
    const Json* input = member(*usage, "prompt_tokens");
    const Json* output = member(*usage, "completion_tokens");
    if (input == nullptr || output == nullptr) return;
    completion_.usage = Usage{count_of(input), count_of(output)};
  }
};

class OpenAiWire final : public Wire {
 public:
  std::string path() const override { return "/chat/completions"; }

  std::vector<std::pair<std::string, std::string>> headers(
      const redact::Secret& key) const override {
    if (key.empty()) return {};
    return {{"Authorization", "Bearer " + std::string(key.reveal())}};
  }

  std::string body(const CompletionRequest& request, const WireSettings& settings) const override {
    Json json{{"model", settings.model}, {"messages", Json::array()}};
    for (const Message& message : request.messages) {
      json["messages"].push_back(message_json(message));
    }
    json[settings.token_limit_field] = request.max_tokens;
    json["temperature"] = settings.temperature;
    for (const Tool& tool : request.tools) {
      json["tools"].push_back({{"type", "function"},
                               {"function",
                                {{"name", tool.name},
                                 {"description", tool.description},
                                 {"parameters", Json::parse(tool.schema_json)}}}});
    }
    json["stream"] = settings.stream;
    if (settings.stream) json["stream_options"] = {{"include_usage", true}};
    return dump(json);
  }

  std::unique_ptr<Accumulator> accumulator() const override {
    return std::make_unique<OpenAiAccumulator>();
  }
};

}  // namespace

std::unique_ptr<Wire> openai_wire() {
  return std::make_unique<OpenAiWire>();
}

}  // namespace agentd::providers
