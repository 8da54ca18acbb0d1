// sbx-bench-latency: times every competitor once per round, in an order that rotates, and prints
// P1. One process, one thread; it removes its scratch directory when it ends by itself.
#include <fmt/core.h>
#include <stdlib.h>
#include <unistd.h>

#include <climits>
#include <filesystem>

#include "bench/src/cgroup_view.h"
#include "bench/src/competitors.h"
#include "bench/src/json_text.h"
#include "bench/src/noise.h"
#include "bench/src/options.h"
#include "bench/src/report.h"
#include "bench/src/timed.h"
#include "runtime/base/scope_exit.h"
#include "runtime/base/sys.h"

namespace sbx::bench {
namespace {

constexpr unsigned kWarmUps = 2;  // fills the page cache; not counted

std::string own_directory() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string self(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  return self.substr(0, self.rfind('/'));
}

// One workload's rows, with the resident floor started.
struct Lane {
  Row row;
  std::optional<Resident> resident;
};

Result<std::vector<Lane>> open_lanes(const Setting& setting, const Workload& workload) {
  SBX_ASSIGN(std::vector<Competitor> competitors, make_competitors(setting, workload));
  std::vector<Lane> lanes;
  for (Competitor& competitor : competitors) {
    Lane lane{{std::move(competitor), {}}, {}};
    if (lane.row.competitor.kind == Kind::kReadyFloor) {
      SBX_ASSIGN(Resident resident, Resident::start(lane.row.competitor.argv));
      lane.resident.emplace(std::move(resident));
    }
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

Result<void> run_once(Lane& lane, bool counted) {
  if (!lane.row.competitor.skip.empty()) return {};
  SBX_ASSIGN(const double milliseconds,
             lane.resident
                 ? lane.resident->time_request()
                 : time_process(lane.row.competitor.argv, lane.row.competitor.stdin_file));
  if (counted) lane.row.milliseconds.push_back(milliseconds);
  return {};
}

Result<WorkloadRows> measure(const Setting& setting, const Workload& workload, unsigned rounds) {
  SBX_ASSIGN(std::vector<Lane> lanes, open_lanes(setting, workload));
  for (unsigned round = 0; round < kWarmUps + rounds; ++round) {
    // Rotated, so that nobody always runs after the same neighbour.
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      SBX_TRY(run_once(lanes[(i + round) % lanes.size()], round >= kWarmUps));
    }
  }
  WorkloadRows rows{workload.name, {}};
  for (Lane& lane : lanes) rows.rows.push_back(std::move(lane.row));
  return rows;
}

double spread(const WorkloadRows& rows) {
  const Summary bare = summarize(rows.rows.front().milliseconds);
  return bare.min > 0 ? bare.p90 / bare.min : 0;
}

Result<Report> measure_all(const Options& options) {
  Setting setting;
  setting.programs = own_directory();
  setting.compare = options.compare;
  SBX_ASSIGN(setting.rootfs, find_rootfs());
  std::string scratch = "/tmp/bench-sbx-XXXXXX";
  if (::mkdtemp(scratch.data()) == nullptr) return sys_error("mkdtemp", scratch);
  const ScopeExit remove([&] {
    std::error_code ignored;  // two small files in /tmp at worst
    std::filesystem::remove_all(scratch, ignored);
  });
  setting.scratch = scratch;
  Report report;
  SBX_ASSIGN(report.hidden_cgroup2, hide_hybrid_cgroup2());
  report.rounds = options.rounds;
  report.machine = read_machine();
  report.noise.load = read_load();
  const CpuTime before = read_cpu_time();
  for (const Workload& workload : workloads()) {
    SBX_ASSIGN(WorkloadRows rows, measure(setting, workload, options.rounds));
    report.workloads.push_back(std::move(rows));
  }
  report.noise.busy = busy_share(before, read_cpu_time());
  report.noise.bare_spread = spread(report.workloads.front());
  report.targets = judge(report.workloads.front());
  return report;
}

Result<void> write_json(const std::string& path, const Report& report) {
  SBX_ASSIGN(const UniqueFd file, sys::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  return sys::write_all(file.get(), report_json(report));
}

// 0, or 1 when --check finds a target missed. A peer that is missing misses its target.
Result<int> run(int argc, char** argv) {
  SBX_ASSIGN(const Options options, parse_options(argc, argv));
  if (options.rounds < kMinRounds) {
    fmt::print(stderr, "latency: {} rounds are too few to conclude from (wanted: {})\n",
               options.rounds, kMinRounds);
  }
  SBX_ASSIGN(const Report report, measure_all(options));
  fmt::print("{}", report_text(report));
  if (!options.json.empty()) SBX_TRY(write_json(options.json, report));
  bool reached = true;
  for (const Target& target : report.targets) reached = reached && target.reached();
  return options.check && !reached ? 1 : 0;
}

}  // namespace
}  // namespace sbx::bench

int main(int argc, char** argv) {
  constexpr int kExitFailed = 2;
  const sbx::Result<int> code = sbx::bench::run(argc, argv);
  if (code) return *code;
  fmt::print(stderr, "latency: {}\n", sbx::to_string(code.error()));
  if (!code.error().fix.empty()) fmt::print(stderr, "fix: {}\n", code.error().fix);
  return kExitFailed;
}
