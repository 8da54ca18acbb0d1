#include "agentd/providers/recordings.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "agentd/providers/json_access.h"
#include "runtime/base/sha256.h"
#include "runtime/base/sys.h"

namespace agentd::providers {
namespace {

using Json = nlohmann::ordered_json;

Finish recorded_finish(std::string_view reason) {
  if (reason == "stop" || reason == "end_turn" || reason == "stop_sequence") return Finish::kStop;
  if (reason == "length" || reason == "max_tokens") return Finish::kLength;
  if (reason == "tool_calls" || reason == "tool_use") return Finish::kToolCalls;
  if (reason == "content_filter" || reason == "refusal") return Finish::kFiltered;
  return Finish::kOther;
}

sbx::Result<void> read_reply(const Json& json, Completion& completion) {
  const Json* reply = member(json, "reply");
  if (reply == nullptr || (!reply->is_string() && !reply->is_object())) {
    return sbx::invalid("\"reply\" must be a string, or an object with text and tool_calls");
  }
  if (reply->is_string()) {
    completion.text = text_of(reply);
    return {};
  }
  completion.text = text_of(member(*reply, "text"));
  const Json* calls = member(*reply, "tool_calls");
  if (calls == nullptr) return {};
  if (!calls->is_array()) return sbx::invalid("\"tool_calls\" must be a list");
  for (const Json& call : *calls) {
    completion.tool_calls.push_back({text_of(member(call, "id")), text_of(member(call, "name")),
                                     text_of(member(call, "arguments"))});
  }
  return {};
}

std::string shown(const RecordingKey& key) {
  return fmt::format("request_sha256 {}, call {}", key.request_sha256, key.call);
}

// The *.jsonl of a directory, sorted.
sbx::Result<std::vector<std::string>> files_in(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".jsonl") files.push_back(entry->path());
  }
  if (error) {
    return sbx::host_lacks("opendir", error.value(), directory,
                           "name a directory with recordings in [provider] recordings");
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

sbx::Result<Recording> parse_recording(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return sbx::invalid("not a JSON object");
  Recording recording;
  recording.key.request_sha256 = text_of(member(json, "request_sha256"));
  recording.key.label = text_of(member(json, "label"));
  recording.key.prompt = text_of(member(json, "prompt"));
  const std::int64_t call = number_of(member(json, "call"));
  if (call < 1 || call > 1000) return sbx::invalid("\"call\" must be a number from 1");
  recording.key.call = static_cast<int>(call);
  if (recording.key.request_sha256.size() != 64) {
    return sbx::invalid("\"request_sha256\" must be 64 hex digits");
  }
  SBX_TRY(read_reply(json, recording.completion));
  recording.completion.finish_reason = text_of(member(json, "finish_reason"));
  recording.completion.finish = recorded_finish(recording.completion.finish_reason);
  if (const Json* usage = member(json, "usage")) {
    recording.completion.usage = Usage{number_of(member(*usage, "input_tokens")),
                                       number_of(member(*usage, "output_tokens"))};
  }
  return recording;
}

std::string to_line(const Recording& recording) {
  const Completion& completion = recording.completion;
  Json json{{"prompt", recording.key.prompt},
            {"request_sha256", recording.key.request_sha256},
            {"label", recording.key.label},
            {"call", recording.key.call}};
  if (completion.tool_calls.empty()) {
    json["reply"] = completion.text;
  } else {
    Json calls = Json::array();
    for (const ToolCall& call : completion.tool_calls) {
      calls.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
    }
    json["reply"] = {{"text", completion.text}, {"tool_calls", std::move(calls)}};
  }
  json["finish_reason"] = completion.finish_reason;
  if (completion.usage) {
    json["usage"] = {{"input_tokens", completion.usage->input_tokens},
                     {"output_tokens", completion.usage->output_tokens}};
  }
  return dump(json);
}

sbx::Result<Recordings> Recordings::load(std::span<const std::string> directories) {
  Recordings all;
  for (const std::string& directory : directories) {
    SBX_ASSIGN(const std::vector<std::string> files, files_in(directory));
    for (const std::string& file : files) {
      SBX_ASSIGN(const std::string text, sbx::sys::read_file(file, kMaxRecordingFileBytes));
      SBX_TRY(all.add_text(text, file));
    }
  }
  return all;
}

sbx::Result<void> Recordings::add_text(std::string_view text, const std::string& origin) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    auto recording = parse_recording(line);
    sbx::Result<void> added;
    if (recording) {
      added = add(*std::move(recording));
    } else {
      added = std::move(recording).error();
    }
    if (!added) return std::move(added).error().with_context(fmt::format("{}:{}", origin, number));
  }
  return {};
}

sbx::Result<void> Recordings::add(Recording recording) {
  const Key key{recording.key.request_sha256, recording.key.call};
  const std::string& label = recording.key.label;
  if (!label.empty()) by_label_.try_emplace({label, recording.key.call}, key);
  const std::string text = shown(recording.key);
  if (!by_hash_.try_emplace(key, std::move(recording)).second) {
    return sbx::invalid("a second recording for " + text);
  }
  return {};
}

const Recording* Recordings::find(const RecordingKey& key) const {
  if (const auto found = by_hash_.find({key.request_sha256, key.call}); found != by_hash_.end()) {
    return &found->second;
  }
  const auto first = by_hash_.lower_bound({key.request_sha256, 0});
  const bool known = first != by_hash_.end() && first->first.first == key.request_sha256;
  if (known || key.label.empty()) return nullptr;
  const auto label = by_label_.find({key.label, key.call});
  return label == by_label_.end() ? nullptr : &by_hash_.at(label->second);
}

std::string request_sha256(std::string_view language, std::string_view text,
                           std::vector<RequestFile> files) {
  std::sort(files.begin(), files.end(),
            [](const RequestFile& a, const RequestFile& b) { return a.name < b.name; });
  std::string bytes = fmt::format("sbx-request-v1\n{}\n{} {}\n", language, text.size(), text);
  for (const RequestFile& file : files) {
    bytes += fmt::format("{} {} {}\n", file.sha256, file.name.size(), file.name);
  }
  return sbx::sha256_of(bytes);
}

}  // namespace agentd::providers
