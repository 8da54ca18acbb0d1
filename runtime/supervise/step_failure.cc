#include "runtime/supervise/step_failure.h"

#include <cerrno>
#include <cstring>

#include "runtime/base/own_limits.h"
#include "runtime/plan/image.h"

namespace sbx::supervise {
namespace {

constexpr int exit_status(int code) {
  return code << 8;
}

std::string fix_for(const plan::Record& record) {
  switch (record.step) {
    case plan::Step::kProc:
      return "proc cannot be mounted where the caller's own /proc is masked (in a container): run "
             "outside it, or with an unmasked /proc ('sbx-run doctor' checks)";
    case plan::Step::kRootfs:
      return record.error == EACCES ? plan::kReadableFix : plan::kRebuildFix;
    case plan::Step::kSeccomp:
      return "seccomp user notification with WAIT_KILLABLE_RECV needs Linux 5.19";
    case plan::Step::kUserNamespace:
      return "raise sysctl user.max_user_namespaces";
    case plan::Step::kFill:
      if (record.error == ENOMEM) return "raise --memory: files given to a run count in it";
      return scarcity_fix(record.error);
    default:
      return scarcity_fix(record.error);
  }
}

}  // namespace

Error step_error(const plan::Record& record) {
  Error error;
  error.stage = "child";
  error.operation = plan::step_name(record.step);
  error.sys_errno = record.error;
  error.fix = fix_for(record);
  error.code = error.fix.empty() ? ErrorCode::kInternal : ErrorCode::kHost;
  return error;
}

std::optional<int> exec_failure_status(const plan::Record& record) {
  if (record.step != plan::Step::kExec) return std::nullopt;
  switch (record.error) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
      return exit_status(127);
    case EACCES:
    case EPERM:
    case ENOEXEC:
    case EISDIR:
    case ENAMETOOLONG:
    case E2BIG:
    case EINVAL:
    case ELIBBAD:
      return exit_status(126);
    default:
      return std::nullopt;
  }
}

std::string exec_failure_text(const std::string& program, const plan::Record& record) {
  return "sbx: cannot run '" + program + "': " + std::strerror(record.error) + "\n";
}

std::optional<Error> interpreter_error(const plan::Plan& plan, const plan::Record& record) {
  if (plan.language.empty() || record.error == E2BIG || !exec_failure_status(record)) {
    return std::nullopt;
  }
  Error error =
      host_lacks("interpreter", record.error, plan.argv.front(),
                 record.error == EACCES ? plan::kReadableFix
                 : plan.image.is_host() ? "install it on this host, or name an image with --rootfs"
                                        : plan::kRebuildFix);
  error.stage = "child";
  return error;
}

}  // namespace sbx::supervise
