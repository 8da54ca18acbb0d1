#include "agentd/service/metrics.h"

#include <fmt/core.h>

namespace agentd::service {
namespace {

void head(std::string& text, std::string_view name, std::string_view type, std::string_view help) {
  text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

template <typename Value>
void one(std::string& text, std::string_view name, std::string_view type, std::string_view help,
         Value value) {
  head(text, name, type, help);
  text += fmt::format("{} {}\n", name, value);
}

}  // namespace

void Metrics::count_ended(const record::Record& record) {
  const char* mode = record.mode == record::Mode::kTools ? "tools" : "code";
  ++requests_[{mode, std::string(state_name(record))}];
  for (const record::Attempt& attempt : record.attempts) {
    if (record.mode == record::Mode::kCode) ++attempts_[std::string(class_or_outcome(attempt))];
    input_tokens_ += attempt.charge.input_tokens;
    output_tokens_ += attempt.charge.output_tokens;
    model_seconds_ += attempt.model_seconds;
    run_seconds_ += attempt.run_seconds;
  }
  cost_ += record.spent.cost.value;
  wall_seconds_ += record.wall_seconds;
}

std::string Metrics::text(const Gauges& gauges) const {
  std::string text;
  head(text, "agentd_requests_total", "counter", "Requests that have ended.");
  for (const auto& [labels, count] : requests_) {
    text += fmt::format("agentd_requests_total{{mode=\"{}\",state=\"{}\"}} {}\n", labels.first,
                        labels.second, count);
  }
  head(text, "agentd_attempts_total", "counter", "Attempts, by what became of them.");
  for (const auto& [failure, count] : attempts_) {
    text += fmt::format("agentd_attempts_total{{class=\"{}\"}} {}\n", failure, count);
  }
  head(text, "agentd_refused_total", "counter", "Requests that were not taken.");
  for (const auto& [code, count] : refused_) {
    text += fmt::format("agentd_refused_total{{code=\"{}\"}} {}\n", code, count);
  }
  head(text, "agentd_http_requests_total", "counter", "Answers by route and status.");
  for (const auto& [key, count] : http_) {
    text += fmt::format("agentd_http_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first,
                        key.second, count);
  }
  head(text, "agentd_tokens_total", "counter", "Tokens, as billed.");
  text += fmt::format("agentd_tokens_total{{direction=\"input\"}} {}\n", input_tokens_);
  text += fmt::format("agentd_tokens_total{{direction=\"output\"}} {}\n", output_tokens_);
  one(text, "agentd_cost_usd_total", "counter", "Notional cost by list price.",
      static_cast<double>(cost_) / 1e6);
  one(text, "agentd_reservations_released_total", "counter",
      "Reservations of dead processes that were released.", released_);
  one(text, "agentd_wall_seconds_total", "counter", "Time of all requests.", wall_seconds_);
  one(text, "agentd_model_seconds_total", "counter", "Of it, waiting for models.", model_seconds_);
  one(text, "agentd_run_seconds_total", "counter", "Of it, waiting for the sandbox.", run_seconds_);
  one(text, "agentd_running", "gauge", "Requests that are worked on.", gauges.running);
  one(text, "agentd_queued", "gauge", "Requests that wait.", gauges.queued);
  one(text, "agentd_unsaved_records", "gauge", "Records of ended requests that wait for room.",
      gauges.unsaved_records);
  one(text, "agentd_unwritten_charges", "gauge", "Charges and releases that wait for room.",
      gauges.unwritten_charges);
  one(text, "agentd_connections", "gauge", "Open connections.", gauges.connections);
  one(text, "agentd_accept_failures_total", "counter",
      "Attempts to take a connection for which no descriptor, memory or watch was left.",
      gauges.accept_failures);
  one(text, "process_resident_memory_bytes", "gauge", "Memory.", gauges.resident_bytes);
  one(text, "process_open_fds", "gauge", "Descriptors.", gauges.open_fds);
  one(text, "process_cpu_seconds_total", "counter", "CPU time.", gauges.cpu_seconds);
  one(text, "process_start_time_seconds", "gauge", "Start.", gauges.started_at);
  return text;
}

}  // namespace agentd::service
