// Metrics: what /metrics says, in Prometheus' text format. On the loop.
//
// Every label has a bounded set of values, whatever clients send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "agentd/record/record.h"

namespace agentd::service {

// What is read when /metrics is asked for.
struct Gauges {
  std::size_t running = 0;
  std::size_t queued = 0;
  std::size_t unsaved_records = 0;    // that wait for room on the disk,
  std::size_t unwritten_charges = 0;  // and settlements and releases
  std::size_t connections = 0;
  std::uint64_t accept_failures = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_fds = 0;
  double cpu_seconds = 0;
  double started_at = 0;  // seconds since the epoch
};

class Metrics {
 public:
  void count_ended(const record::Record& record);
  void count_refused(std::string_view code) { ++refused_[std::string(code)]; }
  void count_released(int reservations) { released_ += static_cast<std::uint64_t>(reservations); }
  // `route` is a template of ours, or empty for none.
  void count_http(std::string_view route, int status) { ++http_[{std::string(route), status}]; }

  [[nodiscard]] std::string text(const Gauges& gauges) const;

 private:
  std::map<std::pair<std::string, std::string>, std::uint64_t> requests_;  // by mode and state
  std::map<std::string, std::uint64_t> attempts_;                          // by class
  std::map<std::string, std::uint64_t> refused_;                           // by problem code
  std::map<std::pair<std::string, int>, std::uint64_t> http_;
  std::uint64_t released_ = 0;
  std::int64_t input_tokens_ = 0;
  std::int64_t output_tokens_ = 0;
  std::int64_t cost_ = 0;  // micro-dollars
  double wall_seconds_ = 0;
  double model_seconds_ = 0;
  double run_seconds_ = 0;
};

}  // namespace agentd::service
