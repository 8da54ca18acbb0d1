// The result as JSON. Names and order are public: callers rely on them.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/base64.h"
#include "runtime/base/utf8.h"
#include "runtime/collect/outcome.h"

namespace sbx::collect {
namespace {

using Json = nlohmann::ordered_json;

// Microseconds are all that was measured; the rounding also keeps the literals short. JSON has no
// NaN.
double number(double value) {
  return std::isfinite(value) ? std::round(value * 1e6) / 1e6 : 0.0;
}

// Strings of ours may quote bytes of the program's: dump() throws on what is not UTF-8.
std::string clean(std::string_view text) {
  std::string result;
  (void)append_replacing(result, text);
  return result;
}

// Head and tail are decoded apart: the cut may fall into a character, and two halves of different
// characters must not meet as a third.
void put_stream(Json& json, const std::string& name, const std::string& bytes, std::size_t head,
                std::uint64_t dropped) {
  const std::string_view all(bytes);
  const std::size_t cut = dropped > 0 ? std::min(head, all.size()) : all.size();
  std::string text;
  const bool head_clean = append_replacing(text, all.substr(0, cut));
  const bool tail_clean = append_replacing(text, all.substr(cut));
  json[name] = std::move(text);
  if (!head_clean || !tail_clean) json[name + "_base64"] = encode_base64(bytes);
  json[name + "_dropped"] = dropped;
}

Json files_json(const Outcome& outcome) {
  Json list = Json::array();
  for (const CollectedFile& file : outcome.files) {
    Json entry{{"path", clean(file.path)},
               {"size", file.size},
               {"sha256", file.sha256},
               {"media_type", file.media_type}};
    if (file.content) entry["content_base64"] = encode_base64(*file.content);
    if (!file.note.empty()) entry["note"] = clean(file.note);
    list.push_back(std::move(entry));
  }
  return list;
}

Json refused_json(const std::vector<RefusedEntry>& refused) {
  Json list = Json::array();
  for (const RefusedEntry& entry : refused) {
    list.push_back({{"path", clean(entry.path)}, {"reason", clean(entry.reason)}});
  }
  return list;
}

Json workspace_json(const SavedWorkspace& workspace) {
  return {{"saved", workspace.saved},
          {"reason", workspace.saved ? Json() : Json(clean(workspace.reason))},
          {"size", workspace.size},
          {"inodes", workspace.inodes},
          {"refused", refused_json(workspace.refused)}};
}

Json denials_json(const Outcome& outcome) {
  Json list = Json::array();
  for (const Denial& denial : outcome.denials) {
    Json entry = {
        {"syscall", clean(denial.syscall)}, {"tier", denial.tier}, {"count", denial.count}};
    if (denial.at_least) entry["at_least"] = true;
    list.push_back(std::move(entry));
  }
  return list;
}

Json error_json(const std::optional<ErrorInfo>& error) {
  if (!error) return nullptr;
  return {{"code", clean(error->code)},
          {"step", clean(error->step)},
          {"errno", error->sys_errno},
          {"detail", clean(error->detail)},
          {"fix", clean(error->fix)}};
}

Json usage_json(const ResourceUsage& usage) {
  return {{"cpu_seconds", number(usage.cpu_seconds)},
          {"memory_peak", usage.memory_peak},
          {"pids_peak", usage.pids_peak},
          {"oom_kills", usage.oom_kills},
          {"throttled_seconds", number(usage.throttled_seconds)},
          {"pids_refused", usage.pids_refused}};
}

Json limits_json(const policy::Limits& limits) {
  Json json = Json::object();
  for (const policy::LimitField& field : policy::limit_fields()) {
    json[std::string(field.name)] = Json::parse(policy::limit_json(limits, field.name));
  }
  return json;
}

Json notes_json(const Outcome& outcome) {
  Json list = Json::array();
  for (const Note& note : outcome.notes) {
    list.push_back({{"code", note.code}, {"text", clean(note.text)}, {"source", note.source}});
  }
  return list;
}

Json layers_json(const Outcome& outcome) {
  Json list = Json::array();
  for (const policy::LayerReport& layer : outcome.layers) {
    list.push_back({{"name", layer.name},
                    {"state", layer_state_name(layer.state)},
                    {"detail", clean(layer.detail)}});
  }
  return list;
}

Json outcome_json(const Outcome& outcome) {
  Json json{{"id", outcome.id},
            {"status", status_name(outcome.status)},
            {"ok", outcome.ok()},
            {"exit_code", outcome.exit_code},
            {"signal", outcome.signal ? Json(*outcome.signal) : Json(nullptr)},
            {"timed_out", outcome.timed_out()},
            {"duration_seconds", number(outcome.duration_seconds)}};
  put_stream(json, "stdout", outcome.stdout_bytes, outcome.stdout_head, outcome.stdout_dropped);
  put_stream(json, "stderr", outcome.stderr_bytes, outcome.stderr_head, outcome.stderr_dropped);
  json["files"] = files_json(outcome);
  json["refused"] = refused_json(outcome.refused);
  if (outcome.workspace) json["workspace"] = workspace_json(*outcome.workspace);
  json["denials"] = denials_json(outcome);
  json["limits_hit"] = outcome.limits_hit;
  json["error"] = error_json(outcome.error);
  json["usage"] = outcome.usage ? usage_json(*outcome.usage) : Json();
  json["limits"] = limits_json(outcome.limits);
  json["notes"] = notes_json(outcome);
  json["layers"] = layers_json(outcome);
  json["start"] = outcome.start;
  json["image"] = {{"name", clean(outcome.image_name)}, {"digest", clean(outcome.image_digest)}};
  json["profile"] = clean(outcome.profile);
  json["language"] = clean(outcome.language);
  json["timings"] = {{"setup", number(outcome.timings.setup)},
                     {"run", number(outcome.timings.run)},
                     {"collect", number(outcome.timings.collect)}};
  return json;
}

}  // namespace

std::string to_json(const Outcome& outcome) {
  return outcome_json(outcome).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sbx::collect
