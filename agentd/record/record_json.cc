#include "agentd/record/record_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "agentd/envelope/strict_json.h"
#include "agentd/redact/json_writer.h"
#include "runtime/base/log.h"

namespace agentd::record {
namespace {

using Json = nlohmann::ordered_json;
using envelope::Cell;
using envelope::Type;
using redact::Clean;
using redact::JsonWriter;
using redact::Redactor;
using std::string_view;

constexpr string_view kItem = JsonWriter::kItem;

double rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

double seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

void put_time(JsonWriter& to, string_view name, std::int64_t milliseconds) {
  to.text_or_null(name, milliseconds == 0 ? std::string() : sbx::log::utc_time(milliseconds));
}

void put_cell(JsonWriter& to, const Cell& cell) {
  const bool as_text = cell.kind == Cell::Kind::kText ||
                       (cell.kind == Cell::Kind::kNumber && envelope::is_long_integer(cell.text));
  if (cell.kind == Cell::Kind::kNull) {
    to.null(kItem);
  } else if (as_text) {
    to.text(kItem, cell.text);
  } else {
    to.tree(kItem, Json::parse(cell.text));  // was JSON when it was read
  }
}

void put_texts(JsonWriter& to, string_view name, const std::vector<std::string>& texts) {
  to.begin_list(name);
  for (const std::string& text : texts) to.text(kItem, text);
  to.end_list();
}

void put_table(JsonWriter& to, string_view name, const envelope::Table& table) {
  to.begin_object(name);
  put_texts(to, "columns", table.columns);
  to.begin_list("rows");
  for (const auto& row : table.rows) {
    to.begin_list(kItem);
    for (const Cell& cell : row) put_cell(to, cell);
    to.end_list();
  }
  to.end_list();
  to.end_object();
}

void put_data(JsonWriter& to, string_view name, const envelope::Envelope& envelope) {
  if (!envelope.data_json.empty()) {
    to.tree(name, Json::parse(envelope.data_json));
  } else if (envelope.type == Type::kTable) {
    put_table(to, name, envelope.table);
  } else if (envelope.type == Type::kText) {
    to.text(name, envelope.text);
  } else {
    to.null(name);
  }
}

void put_result(JsonWriter& to, string_view name, const std::optional<Result>& result) {
  if (!result) return to.null(name);
  to.begin_object(name);
  if (result->kind == Result::Kind::kEnvelope) {
    to.text("type", to_string(result->envelope.type));
    put_data(to, "data", result->envelope);
    to.text_or_null("artifact", result->envelope.artifact);
    to.text_or_null("note", result->envelope.note);
    to.null("banner");
  } else {
    const bool raw = result->kind == Result::Kind::kRaw;
    to.text("type", raw ? "raw" : "text");
    to.text("data", result->text);
    to.null("artifact");
    to.null("note");
    if (raw) {
      to.text("banner", result->banner);
    } else {
      to.null("banner");
    }
  }
  to.end_object();
}

void put_lists_of_run(JsonWriter& to, const Run& run) {
  put_texts(to, "limits_hit", run.limits_hit);
  to.begin_list("notes");
  for (const sandbox::Note& note : run.notes) {
    to.begin_object(kItem);
    to.text("code", note.code);
    to.text("text", note.text);
    to.text("source", note.source);
    to.end_object();
  }
  to.end_list();
  to.begin_list("files");
  for (const sandbox::OutputFile& file : run.files) {
    to.begin_object(kItem);
    to.text("path", file.path);
    to.size("size", file.size);
    to.end_object();
  }
  to.end_list();
  to.begin_list("refused");
  for (const sandbox::Refused& entry : run.refused) {
    to.begin_object(kItem);
    to.text("path", entry.path);
    to.text("reason", entry.reason);
    to.end_object();
  }
  to.end_list();
}

void put_run(JsonWriter& to, string_view name, const std::optional<Run>& run) {
  if (!run) return to.null(name);
  to.begin_object(name);
  to.text("id", run->id);
  to.text("status", run->status);
  to.integer("exit_code", run->exit_code);
  if (run->signal) {
    to.integer("signal", *run->signal);
  } else {
    to.null("signal");
  }
  to.number("duration_seconds", rounded(run->duration_seconds));
  to.text("stdout", run->out);
  to.size("stdout_dropped", run->out_dropped);
  to.text("stderr", run->err);
  to.size("stderr_dropped", run->err_dropped);
  put_lists_of_run(to, *run);
  to.end_object();
}

void put_tools(JsonWriter& to, string_view name, const std::vector<ToolUse>& tools) {
  to.begin_list(name);
  for (const ToolUse& use : tools) {
    to.begin_object(kItem);
    to.text("name", use.name);
    to.text("arguments", use.arguments);
    to.boolean("is_error", use.is_error);
    to.text("output", use.output);
    put_run(to, "run", use.run);
    to.end_object();
  }
  to.end_list();
}

void put_error(JsonWriter& to, string_view name, const std::optional<Error>& error) {
  if (!error) return to.null(name);
  to.begin_object(name);
  to.text("code", error->code);
  to.text("detail", error->detail);
  to.end_object();
}

void put_class(JsonWriter& to, const std::optional<loop::FailureClass>& failure) {
  to.text_or_null("class", failure ? to_string(*failure) : string_view());
}

void put_attempt(JsonWriter& to, const Attempt& attempt, Mode mode) {
  to.begin_object(kItem);
  to.integer("n", attempt.n);
  to.text("outcome", to_string(attempt.outcome));
  put_class(to, attempt.failure);
  put_error(to, "error", attempt.error);
  to.number("seconds", rounded(attempt.model_seconds + attempt.run_seconds));
  to.number("model_seconds", rounded(attempt.model_seconds));
  to.number("run_seconds", rounded(attempt.run_seconds));
  to.begin_object("tokens");
  to.integer("input", attempt.charge.input_tokens);
  to.integer("output", attempt.charge.output_tokens);
  to.end_object();
  to.number("cost_usd", dollars(attempt.charge.cost));
  to.boolean("estimated", attempt.charge.estimated);
  to.boolean("usage_flagged", attempt.charge.flagged);
  to.text("finish_reason", attempt.finish_reason);
  to.integer("model_tries", attempt.model_tries);
  if (mode == Mode::kTools) {
    to.text("text", attempt.text);
    put_tools(to, "tools", attempt.tools);
  } else {
    to.text_or_null("code", attempt.code);
    put_run(to, "run", attempt.run);
  }
  to.end_object();
}

void put_artifacts(JsonWriter& to, string_view name, const std::vector<Artifact>& artifacts) {
  to.begin_list(name);
  for (const Artifact& artifact : artifacts) {
    to.begin_object(kItem);
    to.text("name", artifact.name);
    to.size("size", artifact.size);
    to.text("sha256", artifact.sha256);
    to.text("media_type", artifact.media_type);
    to.boolean("redacted", artifact.redacted);
    to.end_object();
  }
  to.end_list();
}

void put_count(JsonWriter& to, string_view name, std::int64_t limit, std::int64_t used) {
  to.begin_object(name);
  to.integer("limit", limit);
  to.integer("used", used);
  to.end_object();
}

void put_measure(JsonWriter& to, string_view name, double limit, double used) {
  to.begin_object(name);
  to.number("limit", limit);
  to.number("used", used);
  to.end_object();
}

void put_budget(JsonWriter& to, string_view name, const Record& record) {
  const Budget& limits = record.budget;
  const Spent& spent = record.spent;
  const bool tools = record.mode == Mode::kTools;
  to.begin_object(name);
  put_count(to, tools ? "iterations" : "attempts", limits.attempts, record.state.attempt);
  put_count(to, "tokens", limits.tokens, spent.tokens);
  put_measure(to, "cost_usd", dollars(limits.cost), dollars(spent.cost));
  put_measure(to, "sandbox_seconds", seconds(limits.sandbox), seconds(spent.sandbox));
  put_measure(to, "wall_seconds", seconds(limits.wall), rounded(record.work_seconds));
  to.end_object();
}

string_view ceiling_name(const Record& record) {
  const auto& ceiling = record.state.ending.ceiling;
  if (!ceiling) return {};
  const bool iterations = record.mode == Mode::kTools && *ceiling == loop::Ceiling::kAttempts;
  return iterations ? string_view("iterations") : to_string(*ceiling);
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

void put_reason(JsonWriter& to, string_view name, const Record& record) {
  if (!has_ended(record)) return to.null(name);
  to.begin_object(name);
  to.text("code", to_string(record.state.ending.reason));
  to.text_or_null("ceiling", ceiling_name(record));
  put_class(to, last_failure(record));
  to.text("text", record.reason_text);
  to.text_or_null("fix", record.reason_fix);
  to.end_object();
}

void put_request_files(JsonWriter& to, string_view name, const Record& record) {
  to.begin_list(name);
  for (const RequestFile& file : record.files) {
    to.begin_object(kItem);
    to.text("name", file.name);
    to.size("size", file.size);
    to.text("sha256", file.sha256);
    to.end_object();
  }
  to.end_list();
}

void put_provider(JsonWriter& to, string_view name, const Record& record) {
  to.begin_object(name);
  to.text("kind", record.provider_kind);
  to.text("model", record.model);
  to.boolean("replayed", record.replayed);
  to.end_object();
}

}  // namespace

Clean summary_json(const Record& record, const Redactor& redactor) {
  const bool tools = record.mode == Mode::kTools;
  JsonWriter to(redactor);
  to.begin_object(kItem);
  to.text("id", record.id);
  to.text("mode", tools ? "tools" : "code");
  to.text_or_null("label", record.label);
  to.text("state", state_name(record));
  put_reason(to, "reason", record);
  to.text("text", record.text);
  if (tools) {
    to.null("language");
  } else {
    to.text("language", record.language);
  }
  put_request_files(to, "files", record);
  put_provider(to, "provider", record);
  to.size("attempts_made", record.attempts.size());
  to.integer("tokens", record.spent.tokens);
  to.number("cost_usd", dollars(record.spent.cost));
  to.text("cost_basis", record.spent.estimated ? "estimate" : "list price");
  put_time(to, "created_at", record.created_ms);
  put_time(to, "ended_at", record.ended_ms);
  to.number("wall_seconds", rounded(record.wall_seconds));
  to.end_object();
  return to.take();
}

Clean detail_json(const Record& record, const Redactor& redactor) {
  JsonWriter to(redactor);
  to.begin_object(kItem);
  to.begin_object("prompts");
  for (const auto& [kind, name] : record.prompts) to.text(kind, name);
  to.end_object();
  put_budget(to, "budget", record);
  to.begin_list("attempts");
  for (const Attempt& attempt : record.attempts) put_attempt(to, attempt, record.mode);
  to.end_list();
  put_result(to, "result", record.result);
  put_artifacts(to, "artifacts", record.artifacts);
  to.end_object();
  return to.take();
}

Clean record_json(const Record& record, const Redactor& redactor) {
  return Clean::merged(summary_json(record, redactor), detail_json(record, redactor));
}

Clean event_json(const Record& record, const Redactor& redactor) {
  JsonWriter to(redactor);
  to.begin_object(kItem);
  to.text("state", state_name(record));
  to.integer("attempt", record.state.attempt);
  to.text("text", status_line(record));
  to.end_object();
  return to.take();
}

}  // namespace agentd::record
