// sbx-run --print-config: every key of runtime.toml with its default.
#include <unistd.h>

#include "runtime/cli/verbs.h"
#include "runtime/cli/write_out.h"
#include "runtime/policy/config.h"

namespace sbx::cli {

int print_config() {
  return write_out(STDOUT_FILENO, policy::runtime_config_template()) ? 0 : kExitSandboxError;
}

}  // namespace sbx::cli
