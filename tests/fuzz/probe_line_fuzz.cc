// What selftest reads from inside a sandbox, up to the cell of the table that it is shown in.
#include <string_view>

#include "runtime/base/escape.h"
#include "runtime/cli/selftest_cases.h"
#include "runtime/cli/selftest_control.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx;
  const cli::Observation seen = cli::parse_probe_line(fuzz::as_text(data, size));
  fuzz::require(seen.answered == seen.trouble.empty());
  fuzz::require(seen.hostile_syscall.empty());  // that the program cannot say
  if (!seen.answered) return 0;
  const std::string cell = cli::describe(seen);
  fuzz::require(escape_for_terminal(cell) == cell);
  return 0;
}
