// How disturbed the machine was: what every table says about itself.
#pragma once

#include <cstdint>
#include <string>

namespace sbx::bench {

// Jiffies since boot over all CPUs, from /proc/stat. Both 0 when it cannot be read.
struct CpuTime {
  std::uint64_t total = 0;
  std::uint64_t idle = 0;
};
[[nodiscard]] CpuTime read_cpu_time();
// 0 to 1, of everything that ran between the two, ourselves included.
[[nodiscard]] double busy_share(const CpuTime& before, const CpuTime& after);

struct Noise {
  double load = 0;         // the one-minute average before the first round
  double busy = 0;         // busy_share over all rounds
  double bare_spread = 0;  // p90 / min of the bare `true`
};

struct Machine {
  std::string kernel;
  std::string cpu;
  unsigned cpus = 0;
};
[[nodiscard]] Machine read_machine();
[[nodiscard]] double read_load();

}  // namespace sbx::bench
