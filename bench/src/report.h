// What was measured, what it means for the targets, and the table that says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/src/competitors.h"
#include "bench/src/noise.h"
#include "bench/src/statistics.h"

namespace sbx::bench {

struct Row {
  Competitor competitor;
  std::vector<double> milliseconds;
};

struct WorkloadRows {
  std::string name;
  std::vector<Row> rows;
};

// "At least `wanted` times faster than …", by medians. Not measured when the peer was skipped.
struct Target {
  std::string id;
  std::string what;
  double wanted = 0;
  std::optional<double> measured;

  [[nodiscard]] bool reached() const { return measured && *measured >= wanted; }
};

struct Report {
  unsigned rounds = 0;
  bool hidden_cgroup2 = false;  // cgroup_view.h
  Machine machine;
  Noise noise;
  std::vector<WorkloadRows> workloads;
  std::vector<Target> targets;
};

// P1, from the rows of the first workload.
[[nodiscard]] std::vector<Target> judge(const WorkloadRows& rows);
// Markdown: one table per workload, the targets, the noise note.
[[nodiscard]] std::string report_text(const Report& report);

}  // namespace sbx::bench
