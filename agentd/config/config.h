// AgentConfig: what the operator decided for agentd (agentd.toml). Values and a parser.
//
// Read from --config, else /etc/sbx/agentd.toml, else $XDG_CONFIG_HOME/sbx/agentd.toml; absent
// files mean defaults. Strict: unknown keys are errors with file:line:key. `agentd --print-config`
// prints config_template(); a test compares it with the parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agentd/config/key_lines.h"
#include "runtime/base/result.h"

namespace agentd::config {

struct AgentConfig {
  std::string socket{};  // empty: /run/agentd/agentd.sock as root, else $XDG_RUNTIME_DIR/sbx/…
  std::string listen{};  // "127.0.0.1:8765"; empty: no TCP
  std::vector<std::uint32_t> allow_uids{};
  std::string sbxd_socket{};  // empty: SBX_SOCKET, /run/sbx/sbxd.sock, $XDG_RUNTIME_DIR/sbx/…
  std::string state_dir{};    // empty: /var/lib/agentd as root, else $XDG_STATE_HOME/agentd
  std::uint32_t max_running = 8;
  std::uint32_t max_queued = 64;
  std::uint32_t history_max = 1000;
  std::uint32_t artifacts_megabytes = 1024;
  std::uint32_t drain_seconds = 30;
  std::string log_level = "info";

  std::string provider_kind = "auto";
  std::string base_url{};
  std::string model{};
  std::string api_key_file{};
  std::string api_key_credential{};
  std::string api_key_env{};
  double price_in = 0;  // dollars for a million tokens
  double price_out = 0;
  double timeout_seconds = 60;
  std::uint32_t tries = 4;
  std::uint32_t max_tokens = 2048;
  double temperature = 0.2;
  bool stream = true;
  std::string token_limit_field = "max_tokens";
  std::vector<std::string> recordings{};  // directories; empty: the shipped demo

  std::string prompt_codegen = "codegen.v1";
  std::string prompt_repair = "repair.v1";
  std::string prompt_tools = "tools.v1";

  // Ceilings of one request: it may ask for less.
  std::uint32_t attempts = 3;
  std::uint32_t tokens = 24'000;
  double cost_usd = 0.02;
  double sandbox_seconds = 60;
  double wall_seconds = 180;
  double run_seconds = 30;  // of one run

  bool operator==(const AgentConfig&) const = default;
};

// `path` empty: the places above. kInvalid for a mistake in it, kHost when it cannot be read.
// `lines`, where it is wanted, tells later errors where the keys stand.
[[nodiscard]] sbx::Result<AgentConfig> load_config(const std::string& path,
                                                   KeyLines* lines = nullptr);
[[nodiscard]] sbx::Result<AgentConfig> parse_config(std::string_view text, std::string_view origin,
                                                    KeyLines* lines = nullptr);
// Every key with its default and comment, as a file that parses back to the defaults.
[[nodiscard]] std::string config_template();

// True for "http://" to this host: a key may go there in the clear.
[[nodiscard]] bool is_loopback_url(std::string_view url);

}  // namespace agentd::config
