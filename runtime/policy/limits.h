// Limits: every number that bounds a run, with contract names and defaults. Stage: policy.
//
// One table (limits.cc) knows each limit's name, kind and range; profile TOML, JSON, command line
// and printing all go through it, so that a name or a unit exists once.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/policy/quantity.h"

namespace sbx::policy {

enum class NetworkMode { kNone, kHost };

struct Limits {
  std::chrono::milliseconds wall_seconds{30'000};
  std::optional<std::chrono::milliseconds> cpu_seconds;
  std::uint64_t memory = 256 * kMiB;  // bytes; no swap
  std::uint32_t cpus_milli = 500;     // thousandths of a CPU
  std::uint32_t pids = 64;            // processes and threads in the payload's leaf

  std::uint64_t tmp = 64 * kMiB, tmp_inodes = 16384;
  std::uint64_t input = 64 * kMiB, input_inodes = 4096;
  std::uint64_t output = 64 * kMiB, output_inodes = 4096;
  std::uint64_t work = 64 * kMiB, work_inodes = 4096;
  std::uint64_t shm = 32 * kMiB, shm_inodes = 1024;

  std::uint64_t stdout_bytes = 64 * kKiB;  // kept: half head, half tail
  std::uint64_t stderr_bytes = 64 * kKiB;
  std::uint32_t files = 64;               // entries collected from /output
  std::uint64_t file_bytes = 16 * kMiB;   // one collected file
  std::uint64_t files_bytes = 32 * kMiB;  // all collected files together
  std::uint32_t file_depth = 16;          // directories below /output
  std::uint32_t nofile = 256;             // RLIMIT_NOFILE
  std::uint64_t fsize = 64 * kMiB;        // RLIMIT_FSIZE
  bool output_kills = false;              // end the run once stdout or stderr is over its cap
  NetworkMode network = NetworkMode::kNone;

  bool operator==(const Limits&) const = default;
};

// A hard limit (setrlimit(2)) of whoever started us, tighter than what a run was promised: it holds
// inside too, and nobody but root of the host can raise it.
struct CallerLimit {
  std::string name;      // "cpu", "as", "data", "nproc", "stack"
  std::string ulimit;    // the shell's option for it
  std::string promised;  // the limit of a run that it undercuts, by contract name; "" for the stack
  std::uint64_t value = 0;
  bool is_size = false;

  bool operator==(const CallerLimit&) const = default;
};
// "cpu 1 s", "as 58M".
[[nodiscard]] std::string caller_limit_text(const CallerLimit& limit);

inline constexpr std::uint64_t kMaxCodeBytes = 16 * kMiB;

enum class LimitKind { kSeconds, kBytes, kCount, kCpus, kBool, kNetwork };

// One row of the table.
struct LimitField {
  std::string_view name;  // contract name: TOML key, JSON key, Python attribute
  LimitKind kind;
  std::string_view flag;  // sbx-run's own flag, or empty
  std::string_view help;  // a few words with the unit
};

[[nodiscard]] const std::vector<LimitField>& limit_fields();

// Sets one limit from text ("256M", "0.5", "30", "true", "none"). kInvalid names the limit, what
// was given and what is allowed; unknown names are errors too.
[[nodiscard]] Result<void> set_limit(Limits& limits, std::string_view name, std::string_view value);

// True when `limits` ask for more of `name` than `most` does. No limit is more than any; of two
// that are not numbers, "host" is more than "none".
[[nodiscard]] bool limit_is_above(const Limits& limits, const Limits& most, std::string_view name);
// Sets `name` to what `from` has.
void copy_limit(Limits& limits, const Limits& from, std::string_view name);

// The value as it would be typed ("256M", "0.5", "none" for no cpu limit).
[[nodiscard]] std::string limit_text(const Limits& limits, std::string_view name);
// The value as a JSON literal in contract units (bytes, decimal seconds, cpus; null for none).
[[nodiscard]] std::string limit_json(const Limits& limits, std::string_view name);

}  // namespace sbx::policy
