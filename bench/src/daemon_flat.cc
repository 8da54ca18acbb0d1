// P10: whether a run costs the same after very many, and whether anything of them stays.
#include <dirent.h>
#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "bench/src/daemon.h"
#include "bench/src/statistics.h"
#include "bench/src/timed.h"

namespace sbx::bench {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kWantedDrift = 0.10;
constexpr long kWantedDying = 10;
// malloc's own steps, not growth: what is looked for grows with the runs.
constexpr double kResidentSlack = 1 << 20;

long memory_groups() {
  std::ifstream groups("/proc/cgroups");
  for (std::string line; std::getline(groups, line);) {
    std::istringstream words(line);
    std::string name;
    long hierarchy = 0;
    long count = 0;
    words >> name >> hierarchy >> count;
    if (name == "memory") return count;
  }
  return 0;
}

long count_lines(const std::string& path) {
  std::ifstream file(path);
  long count = 0;
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}

// What must be the same before and after.
struct State {
  double resident = 0;
  double descriptors = 0;
  long groups = 0;
  long mounts = 0;
};

State look(const test::DaemonGround& ground) {
  return {ground.metric("process_resident_memory_bytes"), ground.metric("process_open_fds"),
          memory_groups(), count_lines("/proc/" + std::to_string(ground.pid()) + "/mountinfo")};
}

// The cost of a run and of a bare process beside it, in milliseconds.
struct Pair {
  double run = 0;
  double bare = 0;
};

Result<Pair> time_pair(test::RawClient& client, const std::string& text) {
  SBX_ASSIGN(const double bare, time_process({"/usr/bin/true"}, "/dev/null"));
  const auto began = Clock::now();
  const test::RawReply reply = client.ask(text);
  const double took = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  if (reply.status != 200) return invalid("sbxd answered " + std::to_string(reply.status));
  return Pair{took, bare};
}

double ratio_of(const std::vector<Pair>& pairs, std::size_t from, std::size_t to) {
  std::vector<double> runs;
  std::vector<double> bares;
  for (std::size_t i = from; i < to; ++i) {
    runs.push_back(pairs[i].run);
    bares.push_back(pairs[i].bare);
  }
  return summarize(runs).median / summarize(bares).median;
}

}  // namespace

bool daemon_flat(test::DaemonGround& ground, const DaemonOptions& options, Json& json) {
  const std::string text = test::http_request("POST", "/v1/run", R"({"argv":["/usr/bin/true"]})");
  test::RawClient client = ground.connect();
  std::vector<Pair> pairs;
  State before;
  const auto runs = static_cast<std::size_t>(options.runs);
  const std::size_t part = std::max<std::size_t>(1, runs / 10);
  for (std::size_t i = 0; i < runs; ++i) {
    if (i == part) before = look(ground);  // pools and caches are filled by then
    const auto pair = time_pair(client, text);
    if (!pair) {
      fmt::print("run {}: {}\n", i, to_string(pair.error()));
      return false;
    }
    pairs.push_back(*pair);
  }
  std::this_thread::sleep_for(std::chrono::seconds(5));
  const State after = look(ground);
  const double first = ratio_of(pairs, 0, part);
  const double last = ratio_of(pairs, runs - part, runs);
  const long dying = after.groups - before.groups;
  const bool flat = last <= first * (1 + kWantedDrift);
  const bool same = after.resident <= before.resident + kResidentSlack &&
                    after.descriptors <= before.descriptors && after.mounts == before.mounts &&
                    dying <= kWantedDying;
  fmt::print("P10 over {} runs, ÷ bare: first {} {:.3f}, last {} {:.3f} ({:+.1f}%): {}\n", runs,
             part, first, part, last, (last / first - 1) * 100, flat ? "reached" : "missed");
  fmt::print("| | after the first {} | 5 s after the last |\n|---|--:|--:|\n", part);
  fmt::print("| resident MiB | {:.2f} | {:.2f} |\n", before.resident / (1 << 20),
             after.resident / (1 << 20));
  fmt::print("| descriptors | {} | {} |\n", before.descriptors, after.descriptors);
  fmt::print("| mounts | {} | {} |\n", before.mounts, after.mounts);
  fmt::print("| memory groups, the dying too | {} | {} |\n", before.groups, after.groups);
  json["flat"] = {{"runs", runs},
                  {"first", first},
                  {"last", last},
                  {"resident_bytes", {before.resident, after.resident}},
                  {"descriptors", {before.descriptors, after.descriptors}},
                  {"memory_groups", {before.groups, after.groups}}};
  return flat && same;
}

}  // namespace sbx::bench
