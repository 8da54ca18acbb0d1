// RequestService: what is told of requests, under way or ended.
#include <nlohmann/json.hpp>
#include <utility>

#include "agentd/record/record_json.h"
#include "agentd/redact/json_writer.h"
#include "agentd/service/request_service.h"
#include "runtime/base/log.h"

namespace agentd::service {

using Json = nlohmann::ordered_json;
using redact::Clean;
using redact::JsonWriter;
using sbx::Result;
using sbx::async::Task;
using std::chrono::steady_clock;

namespace {

bool may_see(const history::Owner& owner, const Caller& caller) {
  return caller.all || owner == caller.uid;
}

std::uint64_t artifact_bytes(const record::Record& record) {
  std::uint64_t bytes = 0;
  for (const record::Artifact& artifact : record.artifacts) bytes += artifact.size;
  return bytes;
}

// An earlier agentd stored none: what it ran and found no failure in had passed.
std::string_view outcome_of(const Json& attempt, bool has_tools) {
  if (attempt.contains("class") && attempt["class"].is_string()) return "failed";
  if (has_tools) return "done";
  return attempt.contains("run") && attempt["run"].is_object() ? "passed" : "not_run";
}

void add_outcomes(Json& record) {
  if (!record.contains("attempts")) return;
  const bool has_tools = record.value("mode", Json()) == "tools";
  for (Json& attempt : record["attempts"]) {
    if (!attempt.is_object() || attempt.contains("outcome")) continue;
    attempt["outcome"] = outcome_of(attempt, has_tools);
  }
}

}  // namespace

void RequestService::take_times(LiveRequest& live) const {
  using Seconds = std::chrono::duration<double>;
  const auto now = steady_clock::now();
  live.record.wall_seconds = Seconds(now - live.submitted).count();
  if (live.started) live.record.work_seconds = Seconds(now - *live.started).count();
}

LiveEvent RequestService::event_of(const LiveRequest& live, std::string_view kind) const {
  return {static_cast<int>(live.events.size()) + 1, kind, event_json(live.record, parts_.redactor)};
}

history::Entry RequestService::entry_of(const LiveRequest& live,
                                        const std::vector<LiveEvent>& events) const {
  JsonWriter list(parts_.redactor);
  list.begin_list(JsonWriter::kItem);
  for (const LiveEvent& event : events) {
    list.begin_object(JsonWriter::kItem);
    list.integer("id", event.id);
    list.text("event", event.kind);
    list.clean("data", event.data);
    list.end_object();
  }
  list.end_list();
  return {.id = live.record.id,
          .created_ms = live.record.created_ms,
          .owner = live.owner,
          .ended = has_ended(live.record),
          .summary = summary_json(live.record, parts_.redactor),
          .record = detail_json(live.record, parts_.redactor),
          .events = list.take(),
          .artifact_bytes = artifact_bytes(live.record)};
}

Task<std::optional<history::Stored>> RequestService::stored(std::string id, Caller caller) {
  auto job = [&history = parts_.history, id = std::move(id)] { return history.find(id); };
  auto found = co_await parts_.store.run(job);
  std::optional<history::Stored> result;
  if (found && *found && may_see((*found)->owner, caller)) result = std::move(**found);
  co_return result;
}

std::shared_ptr<LiveRequest> RequestService::live(const std::string& id,
                                                  const Caller& caller) const {
  const auto found = live_.find(id);
  if (found == live_.end() || !may_see(found->second->owner, caller)) return nullptr;
  return found->second;
}

// What is stored was clean when it was stored: the shapes of keys may have become more since.
// nullopt: the disk has changed it.
std::optional<Clean> RequestService::clean_again(const std::string& stored, bool is_list) const {
  Json json = Json::parse(stored, nullptr, false);
  if (json.is_object()) add_outcomes(json);
  if (is_list ? json.is_array() : json.is_object()) return parts_.redactor.clean_json(json);
  sbx::log::error("a stored record cannot be read");
  return std::nullopt;
}

Task<std::optional<Clean>> RequestService::record(std::string id, Caller caller) {
  std::optional<Clean> result;
  if (const Live found = live(id, caller)) {
    while (has_ended(found->record) && !found->sealed) (void)co_await found->changed.wait();
    if (!has_ended(found->record)) take_times(*found);
    result = record_json(found->record, parts_.redactor);
    if (found->sealed) has_been_told(id);
    co_return result;
  }
  const auto found = co_await stored(id, caller);
  if (found) result = clean_again(found->record, false);
  if (found) has_been_told(id);
  co_return result;
}

Task<Result<Clean>> RequestService::list(std::string before, int limit, Caller caller) {
  auto job = [&history = parts_.history, before = std::move(before), limit, caller] {
    return history.list(caller.uid, caller.all, before, limit);
  };
  auto page = co_await parts_.store.run(job);
  if (!page) co_return std::move(page).error();
  JsonWriter answer(parts_.redactor);
  answer.begin_object(JsonWriter::kItem);
  answer.begin_list("requests");
  for (const std::string& summary : page->summaries) {
    const Json json = Json::parse(summary, nullptr, false);
    if (!json.is_object()) continue;  // the disk has changed it
    // What is under way has a state that is newer than what was stored.
    const auto found = live_.find(json.value("id", ""));
    if (found == live_.end()) {
      answer.tree(JsonWriter::kItem, json);
    } else {
      answer.clean(JsonWriter::kItem, summary_json(found->second->record, parts_.redactor));
    }
  }
  answer.end_list();
  answer.text_or_null("next", page->next);
  answer.end_object();
  co_return answer.take();
}

Task<std::optional<Clean>> RequestService::stored_events(std::string id, Caller caller) {
  std::optional<Clean> events;
  const auto found = co_await stored(std::move(id), caller);
  if (found) events = clean_again(found->events, true);
  co_return events;
}

Task<std::optional<RequestService::ArtifactFile>> RequestService::artifact(std::string id,
                                                                           std::string name,
                                                                           Caller caller) {
  std::optional<ArtifactFile> result;
  const auto clean = co_await record(id, caller);
  if (!clean) co_return result;
  const Json json = Json::parse(clean->text(), nullptr, false);
  const Json list = json.value("artifacts", Json::array());
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].value("name", "") != name) continue;
    auto file = parts_.artifacts.read(id, i);
    if (!file) break;
    result = ArtifactFile{*std::move(file), name, list[i].value("media_type", ""),
                          list[i].value("size", std::uint64_t{0})};
    break;
  }
  co_return result;
}

Task<sbx::async::Wake> RequestService::told(sbx::async::Deadline deadline) {
  while (!untold_.empty()) {
    const sbx::async::Wake wake = co_await ended_.wait(deadline);
    if (wake != sbx::async::Wake::kReady) co_return wake;
  }
  co_return sbx::async::Wake::kReady;
}

void RequestService::has_been_told(const std::string& id) {
  const auto found = untold_.find(id);
  if (found == untold_.end() || found->second) return;
  untold_.erase(found);
  ended_.notify_all();
}

}  // namespace agentd::service
