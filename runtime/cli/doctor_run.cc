#include "runtime/cli/doctor_run.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "runtime/base/sys.h"
#include "runtime/cli/cancel.h"
#include "runtime/plan/image.h"
#include "runtime/policy/language.h"
#include "runtime/policy/profile.h"
#include "runtime/sandbox.h"

namespace sbx::cli {
namespace {

constexpr std::chrono::seconds kSlowStart{60};  // of an interpreter, on the slowest of hosts

bool has_interpreter(const plan::Image& image, const policy::Language& language) {
  const auto root =
      sys::open(image.is_host() ? "/" : image.rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return root && sys::open_beneath(root->get(), language.argv.front(), O_PATH, 0, RESOLVE_IN_ROOT);
}

std::string_view last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);  // npos + 1 is 0
}

Error error_of(const collect::ErrorInfo& info) {
  return host_lacks(info.step, info.sys_errno, info.detail, info.fix);
}

// An empty program fails for a limit that is too low for its interpreter, which the kernel tells,
// or for what the interpreter lacks.
Error failure(const policy::Language& language, const collect::Outcome& outcome) {
  if (outcome.error) return error_of(*outcome.error);
  const std::string program = "an empty program of " + language.name;
  if (outcome.status == collect::Status::kCancelled) {
    return host_lacks("run", 0, program + " was cancelled by a signal", {});
  }
  for (const collect::Note& note : outcome.notes) {
    if (note.source != "kernel") continue;
    return host_lacks("run", 0, fmt::format("{}: {}", program, note.text),
                      "allow more: a ceiling in runtime.toml (--print-config), or a limit of "
                      "whoever starts it");
  }
  const std::string ending = outcome.signal ? fmt::format("died of signal {}", *outcome.signal)
                                            : fmt::format("ended with {}", outcome.exit_code);
  const std::string_view last = last_line(outcome.stderr_bytes);
  return host_lacks("run", 0,
                    fmt::format("{} {}{}{}", program, ending, last.empty() ? "" : ": ", last),
                    plan::kRebuildFix);
}

}  // namespace

Result<std::vector<std::string>> run_languages(const std::string& rootfs,
                                               const policy::RuntimeConfig& config) {
  SBX_ASSIGN(const plan::Image image, plan::find_image(rootfs, config));
  SandboxOptions options;
  SBX_ASSIGN(options.policy, policy::load_policy("default"));
  options.policy.limits.wall_seconds = kSlowStart;
  options.config = config;
  options.rootfs = rootfs;
  SBX_ASSIGN(const CancelSignals signals, CancelSignals::block());
  SBX_ASSIGN(Sandbox sandbox, Sandbox::open(std::move(options)));
  RunHooks hooks;
  hooks.cancel_fd = signals.fd();
  hooks.collect = collect::CollectMode::kNone;
  std::vector<std::string> ran;
  for (const policy::Language& language : policy::languages()) {
    const bool listed = !plan::image_packages(image, language.image).empty();
    if (!listed && !has_interpreter(image, language)) continue;
    plan::Request request;
    request.language = language.name;
    SBX_ASSIGN(const collect::Outcome outcome, sandbox.run(request, hooks));
    if (!outcome.ok()) return unexpected(failure(language, outcome));
    ran.push_back(language.name);
  }
  return ran;
}

}  // namespace sbx::cli
