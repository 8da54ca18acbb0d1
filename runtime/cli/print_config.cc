// sbx-run --print-config: every key of runtime.toml with its default.
#include "runtime/cli/verbs.h"
#include "runtime/cli/write_out.h"
#include "runtime/policy/config.h"

namespace sbx::cli {

int print_config() {
  return deliver(policy::runtime_config_template()) ? 0 : kExitSandboxError;
}

}  // namespace sbx::cli
