#include "agentd/record/record_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "agentd/envelope/strict_json.h"
#include "runtime/base/log.h"

namespace agentd::record {
namespace {

using Json = nlohmann::ordered_json;
using envelope::Cell;
using envelope::Type;

double rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

double seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

Json time_json(std::int64_t milliseconds) {
  return milliseconds == 0 ? Json() : Json(sbx::log::utc_time(milliseconds));
}

Json cell_json(const Cell& cell) {
  switch (cell.kind) {
    case Cell::Kind::kNull:
      return nullptr;
    case Cell::Kind::kText:
      return cell.text;
    case Cell::Kind::kNumber:
      if (envelope::is_long_integer(cell.text)) return cell.text;
      break;
    case Cell::Kind::kBool:
    case Cell::Kind::kJson:
      break;
  }
  return Json::parse(cell.text);  // was JSON when it was read
}

Json table_json(const envelope::Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (const Cell& cell : row) cells.push_back(cell_json(cell));
    rows.push_back(std::move(cells));
  }
  return {{"columns", table.columns}, {"rows", std::move(rows)}};
}

Json envelope_json(const envelope::Envelope& envelope) {
  Json json{{"type", to_string(envelope.type)}, {"data", nullptr}, {"artifact", nullptr}};
  if (envelope.type == Type::kTable) json["data"] = table_json(envelope.table);
  if (envelope.type == Type::kText) json["data"] = envelope.text;
  if (!envelope.data_json.empty()) json["data"] = Json::parse(envelope.data_json);
  if (!envelope.artifact.empty()) json["artifact"] = envelope.artifact;
  json["note"] = envelope.note.empty() ? Json() : Json(envelope.note);
  json["banner"] = nullptr;
  return json;
}

Json result_json(const std::optional<Result>& result) {
  if (!result) return nullptr;
  if (result->kind == Result::Kind::kEnvelope) return envelope_json(result->envelope);
  const bool raw = result->kind == Result::Kind::kRaw;
  return {{"type", raw ? "raw" : "text"},
          {"data", result->text},
          {"artifact", nullptr},
          {"note", nullptr},
          {"banner", raw ? Json(result->banner) : Json()}};
}

Json files_json(const std::vector<sandbox::OutputFile>& files) {
  Json list = Json::array();
  for (const sandbox::OutputFile& file : files) {
    list.push_back({{"path", file.path}, {"size", file.size}});
  }
  return list;
}

Json run_json(const std::optional<Run>& run) {
  if (!run) return nullptr;
  Json notes = Json::array();
  for (const sandbox::Note& note : run->notes) {
    notes.push_back({{"code", note.code}, {"text", note.text}, {"source", note.source}});
  }
  Json refused = Json::array();
  for (const sandbox::Refused& entry : run->refused) {
    refused.push_back({{"path", entry.path}, {"reason", entry.reason}});
  }
  return {{"id", run->id},
          {"status", run->status},
          {"exit_code", run->exit_code},
          {"signal", run->signal ? Json(*run->signal) : Json()},
          {"duration_seconds", rounded(run->duration_seconds)},
          {"stdout", run->out},
          {"stdout_dropped", run->out_dropped},
          {"stderr", run->err},
          {"stderr_dropped", run->err_dropped},
          {"limits_hit", run->limits_hit},
          {"notes", std::move(notes)},
          {"files", files_json(run->files)},
          {"refused", std::move(refused)}};
}

Json tools_json(const std::vector<ToolUse>& tools) {
  Json list = Json::array();
  for (const ToolUse& use : tools) {
    list.push_back({{"name", use.name},
                    {"arguments", use.arguments},
                    {"is_error", use.is_error},
                    {"output", use.output},
                    {"run", run_json(use.run)}});
  }
  return list;
}

Json attempt_json(const Attempt& attempt, Mode mode) {
  Json json{{"n", attempt.n},
            {"outcome", to_string(attempt.outcome)},
            {"class", attempt.failure ? Json(to_string(*attempt.failure)) : Json()},
            {"error", attempt.error
                          ? Json{{"code", attempt.error->code}, {"detail", attempt.error->detail}}
                          : Json()},
            {"seconds", rounded(attempt.model_seconds + attempt.run_seconds)},
            {"model_seconds", rounded(attempt.model_seconds)},
            {"run_seconds", rounded(attempt.run_seconds)},
            {"tokens",
             {{"input", attempt.charge.input_tokens}, {"output", attempt.charge.output_tokens}}},
            {"cost_usd", dollars(attempt.charge.cost)},
            {"estimated", attempt.charge.estimated},
            {"usage_flagged", attempt.charge.flagged},
            {"finish_reason", attempt.finish_reason},
            {"model_tries", attempt.model_tries}};
  if (mode == Mode::kTools) {
    json["text"] = attempt.text;
    json["tools"] = tools_json(attempt.tools);
  } else {
    json["code"] = attempt.code.empty() ? Json() : Json(attempt.code);
    json["run"] = run_json(attempt.run);
  }
  return json;
}

Json attempts_json(const Record& record) {
  Json list = Json::array();
  for (const Attempt& attempt : record.attempts) {
    list.push_back(attempt_json(attempt, record.mode));
  }
  return list;
}

Json artifacts_json(const std::vector<Artifact>& artifacts) {
  Json list = Json::array();
  for (const Artifact& artifact : artifacts) {
    list.push_back({{"name", artifact.name},
                    {"size", artifact.size},
                    {"sha256", artifact.sha256},
                    {"media_type", artifact.media_type},
                    {"redacted", artifact.redacted}});
  }
  return list;
}

Json budget_json(const Record& record) {
  const Budget& limits = record.budget;
  const Spent& spent = record.spent;
  const char* const unit = record.mode == Mode::kTools ? "iterations" : "attempts";
  return {
      {unit, {{"limit", limits.attempts}, {"used", record.state.attempt}}},
      {"tokens", {{"limit", limits.tokens}, {"used", spent.tokens}}},
      {"cost_usd", {{"limit", dollars(limits.cost)}, {"used", dollars(spent.cost)}}},
      {"sandbox_seconds", {{"limit", seconds(limits.sandbox)}, {"used", seconds(spent.sandbox)}}},
      {"wall_seconds", {{"limit", seconds(limits.wall)}, {"used", rounded(record.work_seconds)}}}};
}

Json ceiling_json(const Record& record) {
  const auto& ceiling = record.state.ending.ceiling;
  if (!ceiling) return nullptr;
  const bool iterations = record.mode == Mode::kTools && *ceiling == loop::Ceiling::kAttempts;
  return iterations ? std::string_view("iterations") : to_string(*ceiling);
}

// A ceiling is no failure: what it kept from being mended is.
std::optional<loop::FailureClass> last_failure(const Record& record) {
  const loop::Ending& ending = record.state.ending;
  if (ending.failure || ending.reason != loop::Reason::kCeiling) return ending.failure;
  for (auto attempt = record.attempts.rbegin(); attempt != record.attempts.rend(); ++attempt) {
    if (attempt->failure) return attempt->failure;
  }
  return std::nullopt;
}

Json reason_json(const Record& record) {
  if (!has_ended(record)) return nullptr;
  const loop::Ending& ending = record.state.ending;
  const auto failure = last_failure(record);
  return {{"code", to_string(ending.reason)},
          {"ceiling", ceiling_json(record)},
          {"class", failure ? Json(to_string(*failure)) : Json()},
          {"text", record.reason_text},
          {"fix", record.reason_fix.empty() ? Json() : Json(record.reason_fix)}};
}

Json prompts_json(const Record& record) {
  Json json = Json::object();
  for (const auto& [kind, name] : record.prompts) json[kind] = name;
  return json;
}

Json request_files_json(const Record& record) {
  Json list = Json::array();
  for (const RequestFile& file : record.files) {
    list.push_back({{"name", file.name}, {"size", file.size}, {"sha256", file.sha256}});
  }
  return list;
}

}  // namespace

Json summary_json(const Record& record) {
  return {
      {"id", record.id},
      {"mode", record.mode == Mode::kTools ? "tools" : "code"},
      {"label", record.label.empty() ? Json() : Json(record.label)},
      {"state", state_name(record)},
      {"reason", reason_json(record)},
      {"text", record.text},
      {"language", record.mode == Mode::kTools ? Json() : Json(record.language)},
      {"files", request_files_json(record)},
      {"provider",
       {{"kind", record.provider_kind}, {"model", record.model}, {"replayed", record.replayed}}},
      {"attempts_made", record.attempts.size()},
      {"tokens", record.spent.tokens},
      {"cost_usd", dollars(record.spent.cost)},
      {"cost_basis", record.spent.estimated ? "estimate" : "list price"},
      {"created_at", time_json(record.created_ms)},
      {"ended_at", time_json(record.ended_ms)},
      {"wall_seconds", rounded(record.wall_seconds)}};
}

Json detail_json(const Record& record) {
  return {{"prompts", prompts_json(record)},
          {"budget", budget_json(record)},
          {"attempts", attempts_json(record)},
          {"result", result_json(record.result)},
          {"artifacts", artifacts_json(record.artifacts)}};
}

Json record_json(const Record& record) {
  Json json = summary_json(record);
  json.update(detail_json(record));
  return json;
}

Json event_json(const Record& record) {
  return {{"state", state_name(record)},
          {"attempt", record.state.attempt},
          {"text", status_line(record)}};
}

}  // namespace agentd::record
