// The operator's runtime.toml: a config, or an error that names file and line.
#include <string_view>

#include "runtime/policy/config.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx;
  const auto config = policy::parse_runtime_config(fuzz::as_text(data, size), "fuzz");
  if (!config) {
    fuzz::require(config.error().code == ErrorCode::kInvalid);
    fuzz::require(to_string(config.error()).find("fuzz:") != std::string::npos);
    return 0;
  }
  const policy::Limits limits;
  (void)policy::check_ceilings(limits, *config, {});  // either answer is right: no crash
  return 0;
}
