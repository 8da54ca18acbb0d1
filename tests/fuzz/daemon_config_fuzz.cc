// The operator's sbxd.toml: a config within its ranges, or an error that names the file.
#include "runtime/daemon/config.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx;
  const auto config = daemon::parse_daemon_config(fuzz::as_text(data, size), "fuzz");
  if (!config) {
    fuzz::require(config.error().code == ErrorCode::kInvalid);
    fuzz::require(to_string(config.error()).find("fuzz:") != std::string::npos);
    return 0;
  }
  fuzz::require(config->max_running >= 1 && config->max_running <= 10'000);
  fuzz::require(config->user != "root" && !config->user.empty());
  fuzz::require(config->memory_budget.percent >= 1 && config->memory_budget.percent <= 100);
  return 0;
}
