#include "bench/src/noise.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <numeric>

#include "runtime/base/sys.h"

namespace sbx::bench {
namespace {

constexpr std::size_t kMaxProcFile = 4U << 20;

std::string cpu_model() {
  const auto text = sys::read_file("/proc/cpuinfo", kMaxProcFile);
  constexpr std::string_view kKey = "model name\t: ";
  const std::size_t at = text ? text->find(kKey) : std::string::npos;
  if (at == std::string::npos) return "unknown";
  const std::size_t begin = at + kKey.size();
  return text->substr(begin, text->find('\n', begin) - begin);
}

}  // namespace

CpuTime read_cpu_time() {
  const auto text = sys::read_file("/proc/stat", kMaxProcFile);
  std::array<std::uint64_t, 8> field{};  // user nice system idle iowait irq softirq steal
  if (!text || std::sscanf(text->c_str(),
                           "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                           " %" SCNu64 " %" SCNu64 " %" SCNu64,
                           &field[0], &field[1], &field[2], &field[3], &field[4], &field[5],
                           &field[6], &field[7]) != 8) {
    return {};
  }
  return {std::accumulate(field.begin(), field.end(), std::uint64_t{0}), field[3] + field[4]};
}

double busy_share(const CpuTime& before, const CpuTime& after) {
  const std::uint64_t total = after.total - before.total;
  if (total == 0) return 0;
  return 1 - static_cast<double>(after.idle - before.idle) / static_cast<double>(total);
}

Machine read_machine() {
  Machine machine;
  utsname name{};
  if (::uname(&name) == 0) machine.kernel = name.release;
  machine.cpu = cpu_model();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    machine.cpus = static_cast<unsigned>(CPU_COUNT(&set));
  }
  return machine;
}

double read_load() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace sbx::bench
