// sbx-run. Wiring only: what was typed goes to its verb.
#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/base/own_limits.h"
#include "runtime/base/service.h"
#include "runtime/cli/arguments.h"
#include "runtime/cli/report.h"
#include "runtime/cli/verbs.h"
#include "runtime/cli/write_out.h"

namespace sbx::cli {
namespace {

// A terminal or /dev/null is no program; a pipe, a redirected file or a socket is.
bool stdin_is_program() {
  struct stat status{};
  if (::fstat(STDIN_FILENO, &status) != 0) return false;
  return S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode);
}

int print(const std::string& text) {
  return deliver(text) ? 0 : kExitSandboxError;
}

// Before anything that needs descriptors, a stack or files: all but what is only text.
bool limits_suffice(Verb verb) {
  if (verb == Verb::kHelp || verb == Verb::kVersion) return true;
  raise_soft_limits();
  const Result<void> checked =
      check_own_limits(verb == Verb::kSelftest ? OwnWork::kSelftest : OwnWork::kRuns);
  if (!checked) print_lines(error_lines(checked.error()));
  return checked.has_value();
}

int dispatch(Arguments arguments) {
  if (!limits_suffice(arguments.verb)) return kExitSandboxError;
  switch (arguments.verb) {
    case Verb::kHelp:
      return print(help_text(arguments.about));
    case Verb::kVersion:
      return print(version_text());
    case Verb::kPrintConfig:
      return print_config();
    case Verb::kDoctor:
      return doctor(arguments);
    case Verb::kSelftest:
      return selftest(arguments);
    case Verb::kExplain:
      return explain(arguments);
    case Verb::kRun:
      break;
  }
  if (arguments.source == Source::kNone && stdin_is_program()) {
    arguments.source = Source::kStandardInput;
  }
  return run(arguments);
}

}  // namespace
}  // namespace sbx::cli

int main(int argc, char** argv) try {
  using sbx::cli::kExitUsage;
  if (!sbx::prepare_process()) return sbx::cli::kExitSandboxError;
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const sbx::Result<sbx::cli::Arguments> arguments = sbx::cli::parse_arguments(words);
  if (arguments) return sbx::cli::dispatch(*arguments);
  sbx::cli::print_lines(sbx::cli::error_lines(arguments.error()));
  return kExitUsage;
} catch (const std::bad_alloc&) {
  sbx::tell_out_of_memory("sbx-run");
  return sbx::cli::kExitSandboxError;
} catch (const std::system_error& failure) {  // of a call that no ordinary host refuses
  sbx::cli::print_lines({failure.what()});
  return sbx::cli::kExitSandboxError;
}
