#include "bench/src/report.h"

#include <fmt/core.h>

#include <algorithm>

namespace sbx::bench {
namespace {

std::optional<double> median_of(const WorkloadRows& rows, Kind kind) {
  for (const Row& row : rows.rows) {
    if (row.competitor.kind != kind || row.milliseconds.empty()) continue;
    return summarize(row.milliseconds).median;
  }
  return std::nullopt;
}

std::optional<double> ratio(std::optional<double> slow, std::optional<double> fast) {
  if (!slow || !fast || *fast <= 0) return std::nullopt;
  return *slow / *fast;
}

std::string times(std::optional<double> value) {
  return value ? fmt::format("{:.2f}", *value) : std::string("–");
}

std::string row_text(const Row& row, std::optional<double> bare, std::optional<double> sbx) {
  if (!row.competitor.skip.empty()) {
    return fmt::format("| {} | skipped: {} | | | | | |\n", row.competitor.name,
                       row.competitor.skip);
  }
  const Summary time = summarize(row.milliseconds);
  return fmt::format("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {} | {} |\n", row.competitor.name,
                     time.n, time.min, time.median, time.p90, times(ratio(time.median, bare)),
                     times(ratio(time.median, sbx)));
}

std::string table(const WorkloadRows& rows) {
  std::string text = fmt::format(
      "| `{}` | n | min ms | median ms | p90 ms | ÷ bare | ÷ sbx-run --cpus 2 |\n"
      "|---|--:|--:|--:|--:|--:|--:|\n",
      rows.name);
  const auto bare = median_of(rows, Kind::kBare);
  const auto sbx = median_of(rows, Kind::kSbx);
  for (const Row& row : rows.rows) text += row_text(row, bare, sbx);
  return text;
}

std::string target_text(const Target& target) {
  const char* verdict = !target.measured ? "not measured" : target.reached() ? "reached" : "missed";
  return fmt::format("{} {}: {}× (wanted: {:.1f}×): {}\n", target.id, target.what,
                     times(target.measured), target.wanted, verdict);
}

}  // namespace

std::vector<Target> judge(const WorkloadRows& rows) {
  const auto bwrap = median_of(rows, Kind::kBwrap);
  const auto alike = median_of(rows, Kind::kBwrapAlike);
  const auto crun = median_of(rows, Kind::kCrun);
  const auto two_cpus = median_of(rows, Kind::kSbx);
  return {{"P1", "sbx-run --cpus 2 faster than bwrap", 1.5, ratio(bwrap, two_cpus)},
          {"P1", "sbx-run --cpus 2 faster than bwrap with the filter and masks as ours", 1.5,
           ratio(alike, two_cpus)},
          {"P1", "sbx-run --cpus 2 faster than crun", 3.0, ratio(crun, two_cpus)}};
}

std::string report_text(const Report& report) {
  std::string text;
  for (const WorkloadRows& rows : report.workloads) text += table(rows) + "\n";
  for (const Target& target : report.targets) text += target_text(target);
  text += fmt::format(
      "\n{} rounds, interleaved; {}, {} CPUs, Linux {}.\n"
      "Noise: bare true p90 is {:.2f}× its min; CPUs {:.0f}% busy over the rounds (ours included), "
      "load {:.1f} before. Compare ratios, not absolutes.\n",
      report.rounds, report.machine.cpu, report.machine.cpus, report.machine.kernel,
      report.noise.bare_spread, report.noise.busy * 100, report.noise.load);
  if (report.hidden_cgroup2) {
    text +=
        "The v2 part of a hybrid cgroup hierarchy was hidden from all, since crun refuses it.\n";
  }
  return text;
}

}  // namespace sbx::bench
