// Metrics: what /metrics says, in Prometheus' text format. Stage: daemon, the loop's thread.
//
// Every label has a bounded set of values, whatever clients send: statuses and languages are ours,
// system calls are the first kMaxSyscalls that were seen and then "other".
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/collect/outcome.h"

namespace sbx::daemon {

// Seconds in buckets, cumulative when printed.
class Histogram {
 public:
  static constexpr std::array<double, 14> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                  0.25,  0.5,    1,     2.5,  5,     10,   30};
  void observe(double seconds);
  void print(std::string& text, std::string_view name, std::string_view labels) const;

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

// What is read when /metrics is asked for.
struct Gauges {
  std::uint32_t running = 0;
  std::uint32_t queued = 0;
  std::uint64_t memory_reserved = 0, memory_budget = 0;
  std::uint64_t answers = 0, answer_budget = 0;
  std::uint64_t unsent_bytes = 0, buffered_bytes = 0;
  std::uint64_t connections = 0, accept_failures = 0;
  std::uint64_t not_admitted = 0, peer_is_full = 0, all_is_full = 0;  // connections refused
  std::uint64_t sessions = 0;
  std::uint64_t sessions_made = 0, sessions_deleted = 0, sessions_idle = 0, sessions_aged = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_fds = 0;
  double cpu_seconds = 0;
  double started_at = 0;  // seconds since the epoch
  bool audit_healthy = true;
  std::uint64_t audit_lines = 0, audit_kept = 0;
};

class Metrics {
 public:
  static constexpr std::size_t kMaxSyscalls = 64;

  void count_run(const collect::Outcome& outcome, double queue_seconds);
  void count_refused(std::string_view budget) { ++refused_[std::string(budget)]; }
  // `route` is a template of ours, or empty for none.
  void count_request(std::string_view route, int status);
  void count_reaped(std::uint64_t groups, std::uint64_t records);
  void count_lost(std::uint64_t bytes) { lost_bytes_ += bytes; }

  [[nodiscard]] std::string text(const Gauges& gauges) const;

 private:
  void count_denial(const collect::Denial& denial);

  std::map<std::pair<std::string, std::string>, std::uint64_t> runs_;  // by status and language
  std::map<std::string, std::uint64_t> denials_;
  std::map<std::string, std::uint64_t> refused_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  Histogram queue_, setup_, run_, collect_;
  std::uint64_t reaped_groups_ = 0, reaped_records_ = 0;
  std::uint64_t lost_bytes_ = 0;
};

}  // namespace sbx::daemon
