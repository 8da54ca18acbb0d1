// The attacks of `sbx-run selftest` that a whole run is judged by: what comes out of it, when and
// how it ends, what it may use. Stage: edge (sbx-run). Tables and their judgement; runs nothing.
//
// The evidence is the outcome and what is seen of the run's processes from outside, never the
// program's word alone. The control is the same act with the limit raised, which must get through,
// or the act in a throw-away namespace outside.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cli/selftest_cases.h"
#include "runtime/collect/outcome.h"

namespace sbx::cli {

// What came of one run.
struct RunSeen {
  std::optional<collect::Outcome> outcome;
  std::string trouble;   // without an outcome: why there was no run
  bool refused = false;  // and that was because the host's ceilings are lower
  // The run's processes in the host's /proc: when it said that it was up, and after its end. -1:
  // nobody looked.
  int alive_during = -1;
  int alive_after = -1;
};

struct RunCase {
  AttackClass attack_class;
  std::string_view name;
  std::string_view layer{};  // as in AttackCase
  std::string_view act{};    // of sbx-probe
  std::string_view argument{};
  std::string_view limits{};  // laid over the profile's: "memory=32M pids=16"
  bool (*held)(const RunSeen&) = nullptr;
  // The control: a run of the same act, or, where `outside` is an act, that one in a throw-away
  // namespace.
  std::string_view control_argument{};
  std::string_view control_limits{};
  bool (*got_through)(const RunSeen&) = nullptr;
  std::string_view outside{};
  std::string_view outside_value{};  // what it must say
  bool cancelled = false;            // the run, not its control: as soon as it is up
};

[[nodiscard]] std::span<const RunCase> run_cases();

// Limits under which every case is run, before its own.
inline constexpr std::string_view kRunCaseLimits =
    "wall_seconds=15 cpu_seconds=none memory=64M pids=32 output_kills=false tmp=16M output=16M "
    "fsize=64M files=64 file_bytes=1M files_bytes=4M file_depth=16";

// The layers that this outcome does without, by its own report: an attack of such a layer gets
// through, and need not be tried.
[[nodiscard]] std::vector<std::string> missing_layers(const collect::Outcome& outcome);

// The control of a case: one of both.
struct RunControl {
  std::optional<RunSeen> run;
  std::optional<Observation> outside;
};
[[nodiscard]] CaseState judge_run(const RunCase& attack, const RunSeen& inside,
                                  const RunControl& control);

// For the table: "oom", "timeout, 2 seen, 0 left", "ok, 1 file, 2 refused".
[[nodiscard]] std::string describe(const RunSeen& seen);
[[nodiscard]] std::string describe(const RunControl& control);

}  // namespace sbx::cli
