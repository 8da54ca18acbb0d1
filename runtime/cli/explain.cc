// sbx-run explain: the plan in words, nothing run.
#include <memory>
#include <utility>

#include "runtime/cli/doctor_checks.h"
#include "runtime/cli/report.h"
#include "runtime/cli/request.h"
#include "runtime/cli/verbs.h"
#include "runtime/cli/write_out.h"
#include "runtime/collect/output_directory.h"
#include "runtime/sandbox.h"

namespace sbx::cli {
namespace {

// What a run would find missing when it tries, where no plan can tell. What it may do without
// (--allow-missing) and its image are the plan's to look at.
Result<void> check_host(const SandboxOptions& options) {
  const policy::LayerMask may_miss = options.policy.allow_missing;
  const std::unique_ptr<Host> host = real_host();
  for (const Check& check : part_checks(*host, {options.config, options.rootfs})) {
    const bool fails = check.state == CheckState::kMissing || check.state == CheckState::kUntried;
    if (!check.required || !fails || check.name == "image") continue;
    const auto layer = policy::layer_from_name(check.name);
    const bool forgiven = layer ? (may_miss & policy::layer_bit(*layer)) != 0
                                : check.name == "namespaces" && may_miss != 0;
    if (!forgiven) return host_lacks(check.name, 0, check.detail, check.fix);
  }
  return {};
}

Result<std::string> explanation(Arguments arguments) {
  if (arguments.source == Source::kNone) arguments.source = Source::kCode;  // an empty program
  SandboxOptions options;
  SBX_ASSIGN(options.config, policy::load_runtime_config());
  SBX_ASSIGN(options.policy, make_policy(arguments));
  for (const auto& typed : arguments.limits) options.asked_limits.push_back(typed.first);
  options.rootfs = arguments.rootfs;
  // What a run would refuse is refused here too.
  if (arguments.output_dir) SBX_TRY(collect::OutputDirectory::check(*arguments.output_dir));
  SBX_TRY(open_standard_input(arguments));
  SBX_ASSIGN(const plan::Request request, make_request(arguments, options.policy.limits));
  const Result<void> host = check_host(options);
  SBX_ASSIGN(std::string text, Sandbox::explain(std::move(options), request));
  SBX_TRY(host);  // what the request or the plan is refused for comes first
  return text;
}

}  // namespace

int explain(const Arguments& arguments) {
  Result<std::string> text = explanation(arguments);
  if (text) {
    if (text->empty() || text->back() != '\n') *text += '\n';
    return deliver(*text) ? 0 : kExitSandboxError;
  }
  print_lines(error_lines(text.error()));
  return text.error().code == ErrorCode::kInvalid ? kExitUsage : kExitSandboxError;
}

}  // namespace sbx::cli
