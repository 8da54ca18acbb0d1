// The long forms of tests/daemon/stress_test.cc.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "bench/src/daemon.h"
#include "bench/src/statistics.h"
#include "tests/daemon/stress.h"

namespace sbx::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWantedSlowdown = 2.0;
constexpr std::size_t kEdge = 20;
constexpr double kWantedRestart = 5;

void print_complaints(const std::vector<std::string>& complaints) {
  for (const std::string& complaint : complaints) fmt::print("  {}\n", complaint);
}

test::Progress every(const char* what, int step) {
  return [what, step](int done) {
    if (done % step == 0) fmt::print(stderr, "daemon: {} {}\n", done, what);
  };
}

bool audit_is_intact(const test::DaemonGround& ground) {
  const test::Finished verified = test::run_process(
      ground.command({"audit", "verify", ground.state_dir() + "/audit/audit.jsonl"}),
      ground.options());
  fmt::print("audit: {}",
             verified.out.substr(verified.out.rfind('\n', verified.out.size() - 2) + 1));
  return verified.exit_code == 0;
}

}  // namespace

bool daemon_load(test::DaemonGround& ground, const DaemonOptions& options, Json& json) {
  const test::LoadResult result =
      test::load(ground, {.requests = options.requests, .connections = options.connections},
                 every("requests", 1000));
  fmt::print(
      "{} requests over {} connections in {:.1f} s ({:.0f} a second): {} exact, {} crossed, "
      "{} lost, {} otherwise\n",
      options.requests, options.connections, result.seconds, options.requests / result.seconds,
      result.exact, result.crossed, result.lost, result.other);
  print_complaints(result.complaints);
  const bool intact = audit_is_intact(ground);
  json["load"] = {{"requests", options.requests}, {"connections", options.connections},
                  {"seconds", result.seconds},    {"exact", result.exact},
                  {"crossed", result.crossed},    {"lost", result.lost},
                  {"audit_intact", intact}};
  return result.exact == options.requests && intact;
}

bool daemon_sleepers(test::DaemonGround& ground, const DaemonOptions& options, Json& json) {
  const test::Things before = ground.runs();  // the spawner's own record
  const test::SleepersResult result = test::sleepers(ground, options.count, every("sleepers", 100));
  print_complaints(result.complaints);
  const std::vector<double>& starts = result.start_seconds;
  if (starts.size() < 2 * kEdge) {
    fmt::print("P8: only {} started\n", starts.size());
    return false;
  }
  const auto edge = static_cast<std::ptrdiff_t>(kEdge);
  const double first = summarize({starts.begin(), starts.begin() + edge}).median;
  const double last = summarize({starts.end() - edge, starts.end()}).median;
  const bool left = ground.runs() != before;
  const bool reached = result.started == options.count && last <= first * kWantedSlowdown &&
                       !left && result.complaints.empty();
  fmt::print(
      "P8 {} of {} sleepers at once; start: first {} {:.1f} ms, last {} {:.1f} ms "
      "({:.2f}×, wanted: at most {:.1f}×); all ended in {:.1f} s, left over: {}; "
      "sbxd {:.1f} MiB resident: {}\n",
      result.started, options.count, kEdge, first * 1000, kEdge, last * 1000, last / first,
      kWantedSlowdown, result.end_seconds, left ? "something" : "nothing",
      result.resident_bytes / (1 << 20), reached ? "reached" : "missed");
  json["sleepers"] = {{"count", options.count},
                      {"started", result.started},
                      {"first_ms", first * 1000},
                      {"last_ms", last * 1000},
                      {"end_seconds", result.end_seconds},
                      {"left", left},
                      {"resident_bytes", result.resident_bytes}};
  return reached;
}

bool daemon_kills(test::DaemonGround& ground, const DaemonOptions& options, Json& json) {
  const test::KillsResult result =
      test::kills(ground, {.kills = options.kills}, every("kills", 20));
  print_complaints(result.complaints);
  const bool intact = audit_is_intact(ground);
  const bool good = result.kills == options.kills && result.runs_left == 0 &&
                    result.missing_files == 0 && result.slowest_restart < kWantedRestart && intact;
  fmt::print(
      "{} kills under load: {} runs left, {} of {} looks at acknowledged session files found "
      "something else, slowest restart {:.2f} s (wanted: below {:.0f} s)\n",
      result.kills, result.runs_left, result.missing_files, result.acknowledged_files,
      result.slowest_restart, kWantedRestart);
  json["kills"] = {{"kills", result.kills},
                   {"runs_left", result.runs_left},
                   {"acknowledged_files", result.acknowledged_files},
                   {"missing_files", result.missing_files},
                   {"slowest_restart", result.slowest_restart},
                   {"audit_intact", intact}};
  return good;
}

}  // namespace sbx::bench
