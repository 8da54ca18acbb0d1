// agentd. Wiring only: what was typed goes to its verb.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "agentd/config/config.h"
#include "agentd/daemon/arguments.h"
#include "agentd/daemon/daemon.h"
#include "agentd/daemon/startup.h"
#include "agentd/redact/redactor.h"
#include "runtime/base/own_limits.h"
#include "runtime/base/service.h"

namespace agentd::daemon {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;

// SECURITY: errors may quote the configuration, and the command line, into which a key was pasted.
int refuse(const sbx::Error& error) {
  const redact::Redactor redactor;
  fmt::print(stderr, "agentd: {}\n", redactor.clean(to_string(error)).text());
  if (!error.fix.empty()) {
    fmt::print(stderr, "agentd: fix: {}\n", redactor.clean(error.fix).text());
  }
  return error.code == sbx::ErrorCode::kInvalid ? kWrongUse : kFailed;
}

int print(const std::string& text) {
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? 0 : kFailed;
}

int check_config(const Arguments& arguments) {
  const auto checked = check_configuration(arguments);
  if (!checked) return refuse(checked.error());
  return print(*checked ? "agentd: the configuration is right\n"
                        : "agentd: the configuration is right; its credential is systemd's, and "
                          "was not looked at\n");
}

int run(const Arguments& arguments) try {
  auto signals = sbx::block_ending_signals();
  if (!signals) return refuse(signals.error());
  auto started = start_up(arguments);
  if (!started) return refuse(started.error());
  return serve(*std::move(started), *std::move(signals));
} catch (const std::system_error& failure) {  // how std::thread says that there can be none
  const int number = failure.code().value();
  return refuse(sbx::host_lacks({}, 0, failure.what(), sbx::scarcity_fix(number)));
}

int dispatch(const Arguments& arguments) {
  switch (arguments.verb) {
    case Verb::kHelp:
      return print(help_text());
    case Verb::kVersion:
      return print("agentd " SBX_VERSION "\n");
    case Verb::kPrintConfig:
      return print(config::config_template());
    case Verb::kCheckConfig:
      return check_config(arguments);
    case Verb::kServe:
    case Verb::kRecord:
      break;
  }
  return run(arguments);
}

}  // namespace
}  // namespace agentd::daemon

int main(int argc, char** argv) try {
  if (!sbx::prepare_process()) return agentd::daemon::kFailed;
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto arguments = agentd::daemon::parse_arguments(words);
  return arguments ? agentd::daemon::dispatch(*arguments)
                   : agentd::daemon::refuse(arguments.error());
} catch (const std::bad_alloc&) {
  sbx::tell_out_of_memory("agentd");
  return agentd::daemon::kFailed;
}
