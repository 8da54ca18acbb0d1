// RuntimeConfig: what the operator decided for this host (runtime.toml). Stage: policy.
//
// Read by the sbx programs from /etc/sbx/runtime.toml, else $XDG_CONFIG_HOME/sbx/runtime.toml;
// absent files mean defaults. Strict: unknown keys are errors with file:line:key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/policy/limits.h"

namespace sbx::policy {

struct RuntimeConfig {
  std::uint32_t uid_base = 1879048192;  // root's range of 65536 host ids starts here
  std::string runtime_dir;              // empty: /run/sbx, $XDG_RUNTIME_DIR/sbx or /tmp/sbx-<uid>
  std::string image_dir;              // empty: /var/lib/sbx/images, then $XDG_DATA_HOME/sbx/images
  std::string cgroup_parent = "sbx";  // name of our subtree
  // Ceilings: the most that any run may ask for. A request above one is refused (exit 2), a default
  // or a profile's limit is lowered to it.
  // 0, or no value, means the host's own bound.
  std::uint64_t max_memory = 0;
  std::uint32_t max_cpus_milli = 0;
  std::uint32_t max_pids = 0;
  std::uint32_t max_wall_seconds = 0;
};

[[nodiscard]] Result<RuntimeConfig> load_runtime_config();
[[nodiscard]] Result<RuntimeConfig> parse_runtime_config(std::string_view text,
                                                         std::string_view origin);
// Every key with its default and comment, as a file that parses back to the defaults.
[[nodiscard]] std::string runtime_config_template();
// The most of one limit, and whose word that is.
struct Bound {
  std::string_view limit;  // by contract name
  Limits most;             // of which only that limit counts
  std::string whose;
  std::string way_out;  // beside asking for less
};
// The most that the host, or whoever started us, lets a run have; 0: not known.
struct HostBounds {
  std::uint64_t memory = 0;  // bytes
  std::uint32_t cpus = 0;
  std::uint64_t nofile = 0, fsize = 0;  // hard limits of this process; RLIM_INFINITY is none
};
// The ceilings of the config and of the host; a limit may have one of each.
[[nodiscard]] std::vector<Bound> bounds_of(const RuntimeConfig& config, const HostBounds& host);
// Lowers what is above the ceilings of the config and of the host, but for the limits in `asked`,
// by name: those are check_ceilings()'s.
void lower_to_ceilings(Limits& limits, const RuntimeConfig& config, const HostBounds& host,
                       const std::vector<std::string>& asked);
// kInvalid when `limits` ask for more than these ceilings, naming the limit and both figures, with
// the fix.
[[nodiscard]] Result<void> check_ceilings(const Limits& limits, const RuntimeConfig& config,
                                          const HostBounds& host);

}  // namespace sbx::policy
