// What loads sbxd: many requests, many sleepers, many kills. Shared by the short forms (tests) and
// the long ones (bench/daemon). Blocking; each fills in what was seen and judges nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/daemon/ground.h"

namespace sbx::test {

using Progress = std::function<void(int done)>;

// Requests over keep-alive connections, each with a nonce that its program prints.
struct LoadOptions {
  int requests = 1000;
  int connections = 32;
  int python_every = 20;  // the others are /bin/echo; some of both are streamed
};
struct LoadResult {
  int exact = 0;    // 200, ok, and its own nonce
  int crossed = 0;  // another one's nonce
  int lost = 0;     // no whole answer
  int other = 0;
  double seconds = 0;
  std::vector<std::string> complaints;  // the first few
};
[[nodiscard]] LoadResult load(const DaemonGround& ground, const LoadOptions& options,
                              const Progress& progress = {});

// Sandboxes that say that they are up and sleep, all at the same time; then all clients leave.
struct SleepersResult {
  int started = 0;
  std::vector<double> start_seconds;  // request to first output, in order
  double end_seconds = 0;             // until the daemon has none any more
  double resident_bytes = 0;          // of the daemon, with all of them
  std::vector<std::string> complaints;
};
[[nodiscard]] SleepersResult sleepers(const DaemonGround& ground, int count,
                                      const Progress& progress = {});

// SIGKILL of sbxd at random moments under load, and its restart.
struct KillsOptions {
  int kills = 20;
  int connections = 8;
  std::uint32_t seed = 20240607;
  std::string config{};
};
struct KillsResult {
  int kills = 0;
  int acknowledged_files = 0;  // session files whose run's result, or whose PUT's answer, was read
  int missing_files = 0;       // of those, not there or not the same after a restart
  int runs_left = 0;           // records and groups of the dead one, after a restart
  double slowest_restart = 0;  // seconds to the first answer
  std::vector<std::string> complaints;
};
[[nodiscard]] KillsResult kills(DaemonGround& ground, const KillsOptions& options,
                                const Progress& progress = {});

}  // namespace sbx::test
