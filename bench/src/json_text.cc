#include "bench/src/json_text.h"

#include <nlohmann/json.hpp>

namespace sbx::bench {
namespace {

using nlohmann::json;

json tmpfs(const char* destination, std::vector<std::string> options) {
  options.insert(options.end(), {"nosuid", "nodev"});
  return {
      {"destination", destination}, {"type", "tmpfs"}, {"source", "tmpfs"}, {"options", options}};
}

json mounts() {
  return json::array({
      {{"destination", "/proc"}, {"type", "proc"}, {"source", "proc"}},
      {{"destination", "/dev"},
       {"type", "tmpfs"},
       {"source", "tmpfs"},
       {"options", {"nosuid", "mode=755", "size=65536k"}}},
      {{"destination", "/dev/pts"},
       {"type", "devpts"},
       {"source", "devpts"},
       {"options", {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}}},
      {{"destination", "/dev/mqueue"},
       {"type", "mqueue"},
       {"source", "mqueue"},
       {"options", {"nosuid", "noexec", "nodev"}}},
      tmpfs("/dev/shm", {"noexec", "mode=1777", "size=32768k"}),
      tmpfs("/tmp", {"mode=1777", "size=65536k"}),
      tmpfs("/work", {"mode=1777", "size=65536k"}),
      tmpfs("/output", {"mode=1777", "size=65536k"}),
  });
}

json namespaces() {
  json list = json::array();
  for (const char* type : {"pid", "network", "ipc", "uts", "mount", "cgroup", "user"}) {
    list.push_back({{"type", type}});
  }
  return list;
}

json resources() {
  constexpr std::int64_t kMemory = 256 << 20;
  return {{"devices", {{{"allow", false}, {"access", "rwm"}}}},
          {"memory", {{"limit", kMemory}, {"swap", kMemory}}},
          {"pids", {{"limit", 64}}},
          {"cpu", {{"quota", 200'000}, {"period", 100'000}}}};
}

json row_json(const Row& row) {
  json out{{"competitor", row.competitor.name}, {"argv", row.competitor.argv}};
  if (!row.competitor.skip.empty()) {
    out["skipped"] = row.competitor.skip;
    return out;
  }
  const Summary times = summarize(row.milliseconds);
  out["n"] = times.n;
  out["min_ms"] = times.min;
  out["median_ms"] = times.median;
  out["p90_ms"] = times.p90;
  out["samples_ms"] = row.milliseconds;
  return out;
}

json target_json(const Target& target) {
  json out{{"id", target.id},
           {"what", target.what},
           {"wanted", target.wanted},
           {"measured", nullptr},
           {"reached", target.reached()}};
  if (target.measured) out["measured"] = *target.measured;
  return out;
}

}  // namespace

std::string oci_config(const std::string& rootfs, const std::vector<std::string>& argv) {
  const json none = json::array();
  const json ids = json::array({{{"containerID", 0}, {"hostID", 1'879'048'192}, {"size", 65536}}});
  const json config{
      {"ociVersion", "1.0.0"},
      {"hostname", "sbx"},
      {"root", {{"path", rootfs}, {"readonly", true}}},
      {"process",
       {{"terminal", false},
        {"user", {{"uid", 65534}, {"gid", 65534}}},
        {"args", argv},
        {"env", {"PATH=/usr/bin:/bin"}},
        {"cwd", "/work"},
        {"capabilities", {{"bounding", none}, {"effective", none}, {"permitted", none}}},
        {"rlimits", {{{"type", "RLIMIT_NOFILE"}, {"hard", 256}, {"soft", 256}}}},
        {"noNewPrivileges", true}}},
      {"mounts", mounts()},
      {"linux",
       {{"cgroupsPath", "/sbx-bench"},  // one level: crun removes it all
        {"resources", resources()},
        {"namespaces", namespaces()},
        {"uidMappings", ids},
        {"gidMappings", ids},
        {"maskedPaths", {"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list"}},
        {"readonlyPaths", {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"}}}}};
  return config.dump();
}

std::string report_json(const Report& report) {
  json workloads = json::array();
  for (const WorkloadRows& rows : report.workloads) {
    json list = json::array();
    for (const Row& row : rows.rows) list.push_back(row_json(row));
    workloads.push_back({{"workload", rows.name}, {"rows", list}});
  }
  json targets = json::array();
  for (const Target& target : report.targets) targets.push_back(target_json(target));
  const json document{{"bench", "latency"},
                      {"rounds", report.rounds},
                      {"hidden_cgroup2", report.hidden_cgroup2},
                      {"machine",
                       {{"kernel", report.machine.kernel},
                        {"cpu", report.machine.cpu},
                        {"cpus", report.machine.cpus}}},
                      {"noise",
                       {{"load_before", report.noise.load},
                        {"busy_share", report.noise.busy},
                        {"bare_p90_to_min", report.noise.bare_spread}}},
                      {"workloads", workloads},
                      {"targets", targets}};
  return document.dump(1) + "\n";
}

}  // namespace sbx::bench
