// sbx-run explain: the plan in words, nothing run.
#include "runtime/cli/report.h"
#include "runtime/cli/request.h"
#include "runtime/cli/verbs.h"
#include "runtime/cli/write_out.h"
#include "runtime/collect/output_directory.h"
#include "runtime/sandbox.h"

namespace sbx::cli {
namespace {

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
  return Sandbox::explain(std::move(options), request);
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
