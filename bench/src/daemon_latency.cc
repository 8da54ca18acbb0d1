// P2, and what a connection costs.
#include <fmt/core.h>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "bench/src/competitors.h"
#include "bench/src/daemon.h"
#include "bench/src/statistics.h"
#include "bench/src/timed.h"

namespace sbx::bench {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr unsigned kWarmUps = 3;
constexpr double kWanted = 2.0;

struct Lane {
  std::string name;
  std::function<Result<double>()> time;  // milliseconds
  std::vector<double> samples{};
};

std::string request(const char* cpus) {
  const Json body = {{"argv", {"/usr/bin/true"}}, {"limits", {{"cpus", std::stod(cpus)}}}};
  return test::http_request("POST", "/v1/run", body.dump());
}

Result<double> time_request(test::RawClient& client, const std::string& text,
                            Clock::time_point began) {
  const test::RawReply reply = client.ask(text);
  const double took = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  if (reply.status == 200 && reply.body.find("\"status\":\"ok\"") != std::string::npos) return took;
  return invalid("sbxd answered " + std::to_string(reply.status) + " " + reply.body);
}

std::vector<Lane> make_lanes(const test::DaemonGround& ground, const Setting& setting,
                             std::optional<Resident>& floor, test::RawClient& kept) {
  const Workload workload = workloads().front();
  std::vector<Lane> lanes;
  const auto process = [&](const std::string& name, const std::vector<std::string>& argv) {
    lanes.push_back({name, [argv] { return time_process(argv, "/dev/null"); }});
  };
  process("bare", workload.argv);
  lanes.push_back({"floor, its parent ready", [&floor] { return floor->time_request(); }});
  std::vector<std::string> words{setting.programs + "/sbx-bench-floor", setting.rootfs, "--"};
  words.insert(words.end(), workload.argv.begin(), workload.argv.end());
  process("floor", words);
  words = {setting.programs + "/sbx-run", "--cpus", "2", "--"};
  words.insert(words.end(), workload.argv.begin(), workload.argv.end());
  process("sbx-run --cpus 2", words);
  lanes.push_back({"sbxd, cpus 2", [&ground, text = request("2")] {
                     const auto began = Clock::now();
                     test::RawClient client = ground.connect();
                     return time_request(client, text, began);
                   }});
  lanes.push_back({"sbxd, cpus 2, connection kept", [&kept, text = request("2")] {
                     return time_request(kept, text, Clock::now());
                   }});
  lanes.push_back({"sbxd, cpus 0.5, connection kept", [&kept, text = request("0.5")] {
                     return time_request(kept, text, Clock::now());
                   }});
  return lanes;
}

Result<std::vector<Lane>> measure(const test::DaemonGround& ground, const DaemonOptions& options) {
  Setting setting;
  setting.programs = options.programs;
  SBX_ASSIGN(setting.rootfs, find_rootfs());
  std::vector<std::string> words{setting.programs + "/sbx-bench-floor", "--serve", setting.rootfs,
                                 "--", workloads().front().argv.front()};
  SBX_ASSIGN(Resident resident, Resident::start(words));
  std::optional<Resident> floor(std::move(resident));
  test::RawClient kept = ground.connect();
  std::vector<Lane> lanes = make_lanes(ground, setting, floor, kept);
  for (unsigned round = 0; round < kWarmUps + options.rounds; ++round) {
    // Rotated, so that nobody always runs after the same neighbour.
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      Lane& lane = lanes[(i + round) % lanes.size()];
      SBX_ASSIGN(const double took, lane.time());
      if (round >= kWarmUps) lane.samples.push_back(took);
    }
  }
  return lanes;
}

}  // namespace

bool daemon_latency(test::DaemonGround& ground, const DaemonOptions& options, Json& json) {
  const auto lanes = measure(ground, options);
  if (!lanes) {
    fmt::print("not measured: {}\n", to_string(lanes.error()));
    return false;
  }
  const double floor = summarize((*lanes)[2].samples).median;
  fmt::print("| `true` | n | min ms | median ms | p90 ms | ÷ floor |\n|---|--:|--:|--:|--:|--:|\n");
  for (const Lane& lane : *lanes) {
    const Summary time = summarize(lane.samples);
    fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", lane.name, time.n, time.min,
               time.median, time.p90, time.median / floor);
    json["latency"][lane.name] = lane.samples;
  }
  const double ratio = summarize((*lanes)[4].samples).median / floor;
  const double resident = ground.metric("process_resident_memory_bytes");
  fmt::print("\nP2 sbxd, cpus 2, ÷ floor: {:.2f} (wanted: at most {:.1f}): {}\n", ratio, kWanted,
             ratio <= kWanted ? "reached" : "missed");
  fmt::print("sbxd itself: {:.1f} MiB resident\n", resident / (1 << 20));
  json["p2"] = ratio;
  json["resident_bytes"] = resident;
  return ratio <= kWanted;
}

}  // namespace sbx::bench
