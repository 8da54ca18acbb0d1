#include "runtime/daemon/metrics.h"

#include <fmt/core.h>

namespace sbx::daemon {
namespace {

void heading(std::string& text, std::string_view name, std::string_view type,
             std::string_view help) {
  text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void gauge(std::string& text, std::string_view name, std::string_view help, double value) {
  heading(text, name, "gauge", help);
  text += fmt::format("{} {}\n", name, value);
}

void counter(std::string& text, std::string_view name, std::string_view help, std::uint64_t value) {
  heading(text, name, "counter", help);
  text += fmt::format("{} {}\n", name, value);
}

// Names of ours and of the kernel's, but a profile file may name a language anyhow.
std::string label_value(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return text;
}

}  // namespace

void Histogram::observe(double seconds) {
  std::size_t bucket = 0;
  while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
  ++counts_[bucket];
  sum_ += seconds;
}

void Histogram::print(std::string& text, std::string_view name, std::string_view labels) const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    count += counts_[i];
    text += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, kBounds[i], count);
  }
  count += counts_.back();
  text += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels, count);
  text += fmt::format("{}_sum{{{}}} {}\n", name, labels, sum_);
  text += fmt::format("{}_count{{{}}} {}\n", name, labels, count);
}

void Metrics::count_run(const collect::Outcome& outcome, double queue_seconds) {
  const std::string language = outcome.language.empty() ? "none" : outcome.language;
  ++runs_[{std::string(status_name(outcome.status)), language}];
  for (const collect::Denial& denial : outcome.denials) count_denial(denial);
  queue_.observe(queue_seconds);
  setup_.observe(outcome.timings.setup);
  run_.observe(outcome.timings.run);
  collect_.observe(outcome.timings.collect);
}

void Metrics::count_denial(const collect::Denial& denial) {
  const bool known = denials_.count(denial.syscall) != 0;
  const bool room = denials_.size() < kMaxSyscalls;
  denials_[known || room ? denial.syscall : "other"] += denial.count;
}

void Metrics::count_request(std::string_view route, int status) {
  ++requests_[{route.empty() ? "none" : std::string(route), status}];
}

void Metrics::count_reaped(std::uint64_t groups, std::uint64_t records) {
  reaped_groups_ += groups;
  reaped_records_ += records;
}

std::string Metrics::text(const Gauges& gauges) const {
  std::string text;
  heading(text, "sbxd_runs_total", "counter", "Runs that ended, by verdict and language.");
  for (const auto& [labels, count] : runs_) {
    text += fmt::format("sbxd_runs_total{{status=\"{}\",language=\"{}\"}} {}\n", labels.first,
                        label_value(labels.second), count);
  }
  heading(text, "sbxd_stage_seconds", "histogram", "How long the stages of a run took.");
  queue_.print(text, "sbxd_stage_seconds", "stage=\"queue\"");
  setup_.print(text, "sbxd_stage_seconds", "stage=\"setup\"");
  run_.print(text, "sbxd_stage_seconds", "stage=\"run\"");
  collect_.print(text, "sbxd_stage_seconds", "stage=\"collect\"");
  heading(text, "sbxd_denials_total", "counter", "System calls that were denied.");
  for (const auto& [syscall, count] : denials_) {
    text += fmt::format("sbxd_denials_total{{syscall=\"{}\"}} {}\n", label_value(syscall), count);
  }
  heading(text, "sbxd_refused_total", "counter", "Requests refused, by the budget that was full.");
  for (const auto& [budget, count] : refused_) {
    text += fmt::format("sbxd_refused_total{{budget=\"{}\"}} {}\n", budget, count);
  }
  heading(text, "sbxd_requests_total", "counter", "Requests answered, by route and status.");
  for (const auto& [labels, count] : requests_) {
    text += fmt::format("sbxd_requests_total{{route=\"{}\",code=\"{}\"}} {}\n", labels.first,
                        labels.second, count);
  }
  heading(text, "sbxd_reaped_total", "counter", "Leftovers of dead sbx programs, removed.");
  text += fmt::format("sbxd_reaped_total{{kind=\"cgroup\"}} {}\n", reaped_groups_);
  text += fmt::format("sbxd_reaped_total{{kind=\"record\"}} {}\n", reaped_records_);
  counter(text, "sbxd_stream_lost_bytes_total", "Live output that slow readers lost.", lost_bytes_);
  counter(text, "sbxd_audit_lines_total", "Lines of the audit file.", gauges.audit_lines);
  gauge(text, "sbxd_audit_kept_lines", "Audit lines that the disk has not taken; lost with sbxd.",
        static_cast<double>(gauges.audit_kept));
  gauge(text, "sbxd_audit_healthy", "1 when the audit file takes lines; else no run starts.",
        gauges.audit_healthy ? 1 : 0);
  gauge(text, "sbxd_running", "Runs under way.", gauges.running);
  gauge(text, "sbxd_queued", "Requests that wait for their turn.", gauges.queued);
  gauge(text, "sbxd_memory_reserved_bytes", "Memory limits of the runs under way.",
        static_cast<double>(gauges.memory_reserved));
  gauge(text, "sbxd_memory_budget_bytes", "The most that they may be together.",
        static_cast<double>(gauges.memory_budget));
  gauge(text, "sbxd_answer_bytes", "Output of runs that is held, or may be, until it is read.",
        static_cast<double>(gauges.answers));
  gauge(text, "sbxd_answer_budget_bytes", "The most that it may be together.",
        static_cast<double>(gauges.answer_budget));
  gauge(text, "sbxd_unsent_bytes", "Bytes of answers that wait for their readers.",
        static_cast<double>(gauges.unsent_bytes));
  gauge(text, "sbxd_body_bytes", "Bytes of request bodies that are held.",
        static_cast<double>(gauges.buffered_bytes));
  gauge(text, "sbxd_connections", "Open connections.", static_cast<double>(gauges.connections));
  heading(text, "sbxd_connections_refused_total", "counter",
          "Connections refused, by the key of the configuration.");
  for (const auto& [key, count] : {std::pair{"max_connections", gauges.all_is_full},
                                   std::pair{"max_connections_per_peer", gauges.peer_is_full},
                                   std::pair{"allow_uids", gauges.not_admitted}}) {
    text += fmt::format("sbxd_connections_refused_total{{key=\"{}\"}} {}\n", key, count);
  }
  counter(text, "sbxd_accept_failures_total",
          "Attempts to take a connection for which no descriptor, memory or watch was left.",
          gauges.accept_failures);
  gauge(text, "sbxd_sessions", "Sessions that exist.", static_cast<double>(gauges.sessions));
  counter(text, "sbxd_sessions_made_total", "Sessions made.", gauges.sessions_made);
  heading(text, "sbxd_sessions_ended_total", "counter", "Sessions that ended, by why.");
  for (const auto& [reason, count] :
       {std::pair{"deleted", gauges.sessions_deleted}, std::pair{"idle", gauges.sessions_idle},
        std::pair{"age", gauges.sessions_aged}}) {
    text += fmt::format("sbxd_sessions_ended_total{{reason=\"{}\"}} {}\n", reason, count);
  }
  gauge(text, "process_resident_memory_bytes", "Memory of sbxd itself.",
        static_cast<double>(gauges.resident_bytes));
  gauge(text, "process_open_fds", "Descriptors of sbxd itself.",
        static_cast<double>(gauges.open_fds));
  heading(text, "process_cpu_seconds_total", "counter", "CPU time of sbxd itself.");
  text += fmt::format("process_cpu_seconds_total {}\n", gauges.cpu_seconds);
  gauge(text, "process_start_time_seconds", "When sbxd started.", gauges.started_at);
  return text;
}

}  // namespace sbx::daemon
