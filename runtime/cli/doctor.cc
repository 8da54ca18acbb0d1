// sbx-run doctor: what this host can enforce, and the fix for what it cannot.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/escape.h"
#include "runtime/cli/doctor_checks.h"
#include "runtime/cli/report.h"
#include "runtime/cli/verbs.h"
#include "runtime/cli/write_out.h"

namespace sbx::cli {
namespace {

std::string to_table(const std::vector<Check>& checks) {
  std::size_t width = 0;
  for (const Check& check : checks) width = std::max(width, check.name.size());
  std::string text;
  for (const Check& check : checks) {
    text += fmt::format("{:<{}}  {:<8}  {}{}\n", check.name, width, check_state_name(check.state),
                        escape_for_terminal(check.detail), check.required ? "" : " (optional)");
    if (check.fix.empty()) continue;
    text += fmt::format("{:<{}}  fix: {}\n", "", width, escape_for_terminal(check.fix));
  }
  if (all_required_hold(checks)) return text + "every required layer can be had\n";
  return text + (runs_are_refused(checks)
                     ? "what needs them is refused until the required ones are fixed\n"
                     : "what was not tried may be there: fix that, and ask again\n");
}

std::string to_json_text(const std::vector<Check>& checks) {
  nlohmann::json list = nlohmann::json::array();
  for (const Check& check : checks) {
    list.push_back({{"name", check.name},
                    {"state", check_state_name(check.state)},
                    {"required", check.required},
                    {"detail", check.detail},
                    {"fix", check.fix}});
  }
  const nlohmann::json document = {{"ok", all_required_hold(checks)}, {"checks", list}};
  // Host files are quoted in details: bytes that are not UTF-8 must not throw.
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int refuse(const Error& error) {
  print_lines(error_lines(error));
  return error.code == ErrorCode::kInvalid ? kExitUsage : kExitSandboxError;
}

}  // namespace

int doctor(const Arguments& arguments) {
  Result<policy::RuntimeConfig> config = policy::load_runtime_config();
  if (!config) {
    return refuse(config.error());
  }
  const Result<plan::Image> image = plan::find_image(arguments.rootfs, *config);
  if (!image && image.error().code == ErrorCode::kInvalid) return refuse(image.error());
  const std::unique_ptr<Host> host = real_host();
  const std::vector<Check> checks = run_checks(*host, {*std::move(config), arguments.rootfs});
  const std::string text = arguments.json ? to_json_text(checks) : to_table(checks);
  if (!deliver(text)) return kExitSandboxError;
  return all_required_hold(checks) ? 0 : 1;
}

}  // namespace sbx::cli
