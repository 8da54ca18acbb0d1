// sbx-bench-daemon's parts: each prints one table or list, and says whether what was wanted held.
// bench/daemon builds and runs it; README.md says what it prints.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/daemon/ground.h"

namespace sbx::bench {

struct DaemonOptions {
  unsigned rounds = 100;  // latency
  int runs = 10'000;      // flat
  int requests = 10'000;  // load
  int connections = 32;   // load
  int count = 500;        // sleepers
  int kills = 200;        // kills
  std::string programs;   // directory of sbx-run and sbx-bench-floor
};

// Prints to stdout, adds to `json`. False: a target was missed, or something was not as it must be.
using DaemonPart = bool (*)(test::DaemonGround& ground, const DaemonOptions& options,
                            nlohmann::ordered_json& json);

// P2: `true` through a running sbxd, among the floor program and sbx-run, interleaved.
[[nodiscard]] bool daemon_latency(test::DaemonGround& ground, const DaemonOptions& options,
                                  nlohmann::ordered_json& json);
// P10: the cost of a run over very many, as a ratio to an interleaved bare `true`.
[[nodiscard]] bool daemon_flat(test::DaemonGround& ground, const DaemonOptions& options,
                               nlohmann::ordered_json& json);
// Every answer exact, over many connections.
[[nodiscard]] bool daemon_load(test::DaemonGround& ground, const DaemonOptions& options,
                               nlohmann::ordered_json& json);
// P8: sleepers at once.
[[nodiscard]] bool daemon_sleepers(test::DaemonGround& ground, const DaemonOptions& options,
                                   nlohmann::ordered_json& json);
// SIGKILL at random moments.
[[nodiscard]] bool daemon_kills(test::DaemonGround& ground, const DaemonOptions& options,
                                nlohmann::ordered_json& json);

}  // namespace sbx::bench
