// The operator's agentd.toml: a configuration within its ranges, or an error that names the file.
#include "agentd/config/config.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using sbx::fuzz::require;
  const auto config = agentd::config::parse_config(sbx::fuzz::as_text(data, size), "fuzz");
  if (!config) {
    require(config.error().code == sbx::ErrorCode::kInvalid);
    require(to_string(config.error()).find("fuzz") != std::string::npos);
    return 0;
  }
  require(config->attempts >= 1 && config->attempts <= 10);
  require(config->cost_usd > 0 && config->wall_seconds >= 1 && config->run_seconds >= 1);
  require(config->max_running >= 1 && config->tokens >= 1);
  // A key is never sent in the clear.
  const bool keyed = !config->api_key_file.empty() || !config->api_key_credential.empty() ||
                     !config->api_key_env.empty();
  require(!keyed || !config->base_url.starts_with("http://") ||
          agentd::config::is_loopback_url(config->base_url));
  return 0;
}
