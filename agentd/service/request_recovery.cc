// RequestService: what an earlier process left unfinished.
#include <nlohmann/json.hpp>
#include <vector>

#include "agentd/record/money.h"
#include "agentd/service/request_service.h"
#include "agentd/store/clock.h"
#include "runtime/base/log.h"

namespace agentd::service {

using Json = nlohmann::ordered_json;
using sbx::Result;

namespace {

// Above every id that a request can have counted to before agentd died.
constexpr int kEndAfterRestart = 1'000'000;

}  // namespace

Result<void> RequestService::recover() {
  SBX_ASSIGN(const std::vector<std::string> ids, parts_.history.unfinished());
  for (const std::string& id : ids) SBX_TRY(end_unfinished(id));
  SBX_ASSIGN(const int released, parts_.book.release_dead_owners());
  parts_.metrics.count_released(released);
  if (!ids.empty() || released > 0) {
    sbx::log::warning("an earlier agentd died at work", {{"requests", std::uint64_t{ids.size()}},
                                                         {"reservations", std::int64_t{released}}});
  }
  return {};
}

// What the ledger knows of a request whose record was lost with the process.
Result<void> RequestService::add_spent(const std::string& id, Json& record) {
  SBX_ASSIGN(const ledger::Balance tokens, parts_.book.balance("request/" + id + "/tokens"));
  SBX_ASSIGN(const ledger::Balance cost, parts_.book.balance("request/" + id + "/cost"));
  record["tokens"] = tokens.settled;
  record["cost_usd"] = dollars(record::MicroDollars{cost.settled});
  // A reply that was under way may have cost something, too.
  if (tokens.reserved > 0) record["cost_basis"] = "estimate";
  if (record.contains("budget")) {
    record["budget"]["tokens"]["used"] = record["tokens"];
    record["budget"]["cost_usd"]["used"] = record["cost_usd"];
  }
  return {};
}

// What was stored at its submission becomes the record of a request that failed.
Result<void> RequestService::end_unfinished(const std::string& id) {
  SBX_ASSIGN(const auto stored, parts_.history.find(id));
  if (!stored) return {};
  Json record = Json::parse(stored->record, nullptr, false);
  if (!record.is_object()) record = Json{{"id", id}};
  record["state"] = "failed";
  if (record.contains("artifacts")) record["artifacts"] = Json::array();  // they were in memory
  record["reason"] = {{"code", "internal"},
                      {"ceiling", nullptr},
                      {"class", nullptr},
                      {"text", "agentd ended while it was under way"},
                      {"fix", nullptr}};
  record["ended_at"] = sbx::log::utc_time(store::now_ms());
  SBX_TRY(add_spent(id, record));
  Json summary = record;
  Json detail = Json::object();
  for (const char* field : {"prompts", "budget", "attempts", "result", "artifacts"}) {
    if (const auto found = record.find(field); found != record.end()) detail[field] = *found;
    summary.erase(field);
  }
  const Json events = Json::array({{{"id", kEndAfterRestart},
                                    {"event", "end"},
                                    {"data",
                                     {{"state", "failed"},
                                      {"attempt", record.value("attempts_made", 0)},
                                      {"text", "Failed: agentd ended while it was under way."}}}}});
  parts_.artifacts.remove(id);
  return parts_.history.save({.id = id,
                              .owner = stored->owner,
                              .ended = true,
                              .summary = parts_.redactor.clean_json(summary),
                              .record = parts_.redactor.clean_json(detail),
                              .events = parts_.redactor.clean_json(events)});
}

}  // namespace agentd::service
