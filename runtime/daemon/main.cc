// sbxd. Wiring only: what was typed goes to its verb.
#include <fmt/core.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "http/listener.h"
#include "runtime/base/log.h"
#include "runtime/base/own_limits.h"
#include "runtime/base/service.h"
#include "runtime/daemon/arguments.h"
#include "runtime/daemon/audit_verify.h"
#include "runtime/daemon/service.h"
#include "runtime/daemon/startup.h"

namespace sbx::daemon {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;

int refuse(const Error& error) {
  fmt::print(stderr, "sbxd: {}\n", to_string(error));
  if (!error.fix.empty()) fmt::print(stderr, "sbxd: fix: {}\n", error.fix);
  return error.code == ErrorCode::kInvalid ? kWrongUse : kFailed;
}

int print(const std::string& text) {
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? 0 : kFailed;
}

int check_config(const Arguments& arguments) {
  const auto configuration = load_configuration(arguments);
  if (!configuration) return refuse(configuration.error());
  for (const std::string& warning : configuration->warnings) {
    fmt::print(stderr, "sbxd: warning: {}\n", warning);
  }
  return print("sbxd: the configuration is right\n");
}

int run(const Arguments& arguments) try {
  auto signals = block_ending_signals();
  if (!signals) return refuse(signals.error());
  auto started = start_up(arguments);
  if (!started) return refuse(started.error());
  return serve(*std::move(started), *std::move(signals));
} catch (const std::system_error& failure) {  // how std::thread says that there can be none
  const int number = failure.code().value();
  return refuse(host_lacks({}, 0, failure.what(), scarcity_fix(number)));
}

int dispatch(const Arguments& arguments) {
  switch (arguments.verb) {
    case Verb::kHelp:
      return print(help_text());
    case Verb::kAuditHelp:
      return print(audit_help_text());
    case Verb::kVersion:
      return print("sbxd " SBX_VERSION "\n");
    case Verb::kPrintConfig:
      return print(daemon_config_template());
    case Verb::kCheckConfig:
      return check_config(arguments);
    case Verb::kAuditVerify:
      return audit_verify(arguments);
    case Verb::kServe:
      break;
  }
  return run(arguments);
}

// Large bodies and results are given back to the system when they are freed. By itself, malloc
// would learn to keep blocks of their size.
constexpr int kMappedBytes = 256 * 1024;

}  // namespace
}  // namespace sbx::daemon

int main(int argc, char** argv) try {
  if (!sbx::prepare_process()) return sbx::daemon::kFailed;
  if (const auto closed = sbx::http::close_inherited_descriptors(); !closed) {
    return sbx::daemon::refuse(closed.error());
  }
  (void)::mallopt(M_MMAP_THRESHOLD, sbx::daemon::kMappedBytes);  // without it, only more memory
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto arguments = sbx::daemon::parse_arguments(words);
  return arguments ? sbx::daemon::dispatch(*arguments) : sbx::daemon::refuse(arguments.error());
} catch (const std::bad_alloc&) {
  sbx::tell_out_of_memory("sbxd");
  return sbx::daemon::kFailed;
}
