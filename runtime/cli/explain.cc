// sbx-run explain: the plan in words. The host is tried, the program is not run.
#include <memory>
#include <string>
#include <utility>

#include "runtime/cli/doctor_checks.h"
#include "runtime/cli/doctor_rootfs.h"
#include "runtime/cli/report.h"
#include "runtime/cli/request.h"
#include "runtime/cli/verbs.h"
#include "runtime/cli/write_out.h"
#include "runtime/collect/output_directory.h"
#include "runtime/sandbox.h"

namespace sbx::cli {
namespace {

using policy::Layer;

// Whether a run may do without what a check of the host's is about (--allow-missing).
bool is_forgiven(const Check& check, policy::LayerMask may_miss) {
  const auto may_be = [may_miss](Layer layer) {
    return (may_miss & policy::layer_bit(layer)) != 0;
  };
  if (check.name == "kernel") return may_be(Layer::kSeccomp);
  if (check.name != "namespaces") {
    const auto layer = policy::layer_from_name(check.name);
    return layer && may_be(*layer);
  }
  for (const auto& [layer, step] : {std::pair{Layer::kNetNamespace, "unshare net"},
                                    {Layer::kIpcNamespace, "unshare ipc"},
                                    {Layer::kUtsNamespace, "unshare uts"},
                                    {Layer::kCgroupNamespace, "unshare cgroup"}}) {
    if (may_be(layer) && check.detail.starts_with(step)) return true;
  }
  return false;
}

// What a run would find missing when it tries, where no plan can tell.
Result<void> check_host(const SandboxOptions& options) {
  const std::unique_ptr<Host> host = real_host();
  for (const Check& check : host_checks(*host, options.config)) {
    const bool fails = check.state == CheckState::kMissing || check.state == CheckState::kUntried;
    if (!check.required || !fails || is_forgiven(check, options.policy.allow_missing)) continue;
    return host_lacks(check.name, 0, check.detail, check.fix);
  }
  return {};
}

Result<void> check_image(const SandboxOptions& options, const plan::Request& request) {
  SBX_ASSIGN(const plan::Image image, plan::find_image(options.rootfs, options.config));
  const policy::Language* const language = policy::find_language(request.language);
  if (image.is_host() || language == nullptr) return {};
  return check_interpreter(image, *language);
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
  const Result<void> image = check_image(options, request);
  SBX_ASSIGN(std::string text, Sandbox::explain(std::move(options), request));
  SBX_TRY(host);  // what the request or the plan is refused for comes first
  SBX_TRY(image);
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
