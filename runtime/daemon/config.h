// DaemonConfig: what the operator decided for sbxd (sbxd.toml). Stage: daemon. Values and a parser.
//
// Read from --config, else /etc/sbx/sbxd.toml, else $XDG_CONFIG_HOME/sbx/sbxd.toml; absent files
// mean defaults. Strict: unknown keys are errors with file:line:key. `sbxd --print-config` prints
// config_template(); a test compares it with the parser.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/daemon/ceilings.h"
#include "runtime/policy/limits.h"

namespace sbx::daemon {

// "80%" of what this host or unit has, or a number of bytes.
struct MemoryBudget {
  std::uint32_t percent = 80;
  std::uint64_t bytes = 0;  // when not 0, instead of the percentage
  bool operator==(const MemoryBudget&) const = default;
};

// Where keys were written, for what is found wrong with them later.
struct WrittenKeys {
  std::string origin;  // the file
  std::map<std::string, std::uint32_t, std::less<>>
      lines;  // by path; of elements too: "profiles[1]"

  [[nodiscard]] bool has(std::string_view path) const;
  // "f:3: key 'image'", as errors begin.
  [[nodiscard]] std::string place(std::string_view path) const;
};

struct DaemonConfig {
  std::string socket;     // empty: /run/sbx/sbxd.sock as a service, else $XDG_RUNTIME_DIR/sbx/…
  std::string state_dir;  // empty: /var/lib/sbx as a service, else $XDG_STATE_HOME/sbx
  std::string user = "sbx";
  std::vector<std::uint32_t> allow_uids;
  std::string image = "default";
  std::vector<std::string> profiles;
  std::vector<std::string> allow_missing;

  std::uint32_t max_running = 64;
  std::uint32_t max_queued = 256;
  std::uint32_t max_queued_per_peer = 128;
  std::uint32_t queue_seconds = 60;
  MemoryBudget memory_budget;
  std::uint64_t body_budget = 40 * policy::kMiB;
  std::uint64_t answer_budget = 32 * policy::kMiB;
  // Not a key: what a file of an answer counts in it besides, for the descriptor that it takes
  // (fit_host()).
  std::uint64_t answer_bytes_per_file = 0;
  std::uint32_t drain_seconds = 30;
  std::uint32_t reaper_seconds = 60;
  std::uint64_t stream_buffer = policy::kMiB;
  std::uint32_t max_connections = 1024;
  std::uint32_t max_connections_per_peer = 512;
  std::uint32_t audit_sync_seconds = 1;
  std::string log_level = "info";

  std::uint32_t session_max = 1000;
  std::uint32_t session_max_per_peer = 100;
  std::uint32_t session_idle_seconds = 3600;
  std::uint32_t session_age_seconds = 7 * 24 * 3600;

  Ceilings ceilings = default_ceilings();

  WrittenKeys written;  // empty without a file
};

// `path` empty: the places above. kInvalid for a mistake in it, kHost when it cannot be read.
[[nodiscard]] Result<DaemonConfig> load_daemon_config(const std::string& path);
[[nodiscard]] Result<DaemonConfig> parse_daemon_config(std::string_view text,
                                                       std::string_view origin);
// Every key with its default and comment, as a file that parses back to the defaults.
[[nodiscard]] std::string daemon_config_template();

}  // namespace sbx::daemon
