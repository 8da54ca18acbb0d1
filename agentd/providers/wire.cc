#include "agentd/providers/wire.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agentd/providers/json_access.h"
#include "agentd/redact/quote.h"

namespace agentd::providers {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Completion Accumulator::take() {
  Completion completion = std::move(completion_);
  if (overrun()) {
    completion.finish = Finish::kLength;
    completion.usage.reset();
  } else if (!complete_) {
    completion.finish = Finish::kCut;
    // What was told so far is not what it came to: Anthropic's first event counts one token.
    completion.usage.reset();
  }
  std::erase_if(completion.tool_calls, [](const ToolCall& call) {
    return call.name.empty() && call.id.empty() && call.arguments.empty();  // a gap, and no call
  });
  // Some servers name no id, but want one back with the answer; and none takes a call of no name.
  for (std::size_t i = 0; i < completion.tool_calls.size(); ++i) {
    ToolCall& call = completion.tool_calls[i];
    if (call.id.empty()) call.id = "call_" + std::to_string(i + 1);
    if (call.name.empty()) call.name = "unnamed";
  }
  return completion;
}

void Accumulator::count(std::size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > kMaxReplyBytes)
    fail("the reply is longer than " + std::to_string(kMaxReplyBytes) + " bytes");
}

void Accumulator::add_text(std::string_view text) {
  begun_ = true;
  count(text.size());
  if (!error_ && !overrun()) completion_.text += text;
}

void Accumulator::add_arguments(ToolCall* call, std::string_view text) {
  count(text.size());
  if (call != nullptr && !error_ && !overrun()) call->arguments += text;
}

void Accumulator::fail_not_json(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (text.empty()) {
    fail_foreign("the answer is empty");
  } else if (text.starts_with('<')) {
    fail_foreign("the answer is a page, not JSON");
  } else if (text.starts_with('{') && !Json::accept(text)) {
    fail("the answer is not JSON: it was cut, or is damaged");
  } else {
    fail_foreign("the answer is not JSON of a reply");
  }
}

ToolCall* Accumulator::tool_call(std::size_t index) {
  begun_ = true;
  const auto found = std::find(indexes_.begin(), indexes_.end(), index);
  const auto place = static_cast<std::size_t>(found - indexes_.begin());
  if (found != indexes_.end()) return &completion_.tool_calls[place];
  if (indexes_.size() == kMaxToolCalls) {
    completion_.calls_dropped = true;
    return nullptr;
  }
  indexes_.push_back(index);
  return &completion_.tool_calls.emplace_back();
}

std::string error_message(std::string_view body) {
  constexpr std::size_t kMaxMessage = 300;
  const Json json = Json::parse(body, nullptr, false);
  const Json* found = member(json, "error");
  if (found == nullptr) found = &json;
  for (const char* name : {"message", "detail"}) {
    if (const Json* text = member(*found, name); text != nullptr && text->is_string()) {
      found = text;
      break;
    }
  }
  return std::string(redact::first_words(text_of(found), kMaxMessage));
}

}  // namespace agentd::providers
