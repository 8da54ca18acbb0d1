#include "runtime/supervise/step_failure.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/own_limits.h"
#include "runtime/base/sys.h"
#include "runtime/plan/image.h"

namespace sbx::supervise {
namespace {

constexpr int exit_status(int code) {
  return code << 8;
}

bool is_shut(const std::string& directory) {
  struct stat info{};
  return ::stat(directory.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) == 0;
}

// Where these steps mount is beneath the image's root. The capability that they act with does not
// reach an owner who has no id in the run's user namespace.
bool is_shut_image(const plan::Plan& plan, const plan::Record& record) {
  if (plan.image.is_host() || record.error != EACCES) return false;
  if (record.step < plan::Step::kRootfs || record.step > plan::Step::kMasks) return false;
  const std::string& rootfs = plan.image.rootfs;
  return is_shut(rootfs) || is_shut(rootfs + "/dev") || is_shut(rootfs + "/proc") ||
         std::any_of(plan.tmpfs.begin(), plan.tmpfs.end(),
                     [&](const plan::TmpfsMount& mount) { return is_shut(rootfs + mount.target); });
}

// Not a program that somebody may not reach, but none: what no chmod of the image mends.
bool is_no_program(const std::string& rootfs, const std::string& path) {
  const auto root = sys::open(rootfs, O_PATH | O_DIRECTORY);
  if (!root) return false;
  const auto file = sys::open_beneath(root->get(), path, O_PATH, 0, RESOLVE_IN_ROOT);
  struct stat info{};
  if (!file || ::fstat(file->get(), &info) != 0) return false;
  return !S_ISREG(info.st_mode) || (info.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0;
}

std::string fix_for(const plan::Record& record) {
  switch (record.step) {
    case plan::Step::kProc:
      return "proc cannot be mounted where the caller's own /proc is masked (in a container): run "
             "outside it, or with an unmasked /proc ('sbx-run doctor' checks)";
    case plan::Step::kRootfs:
      return plan::kRebuildFix;
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

Error step_error(const plan::Plan& plan, const plan::Record& record) {
  Error error;
  error.stage = "child";
  error.operation = plan::step_name(record.step);
  error.sys_errno = record.error;
  const bool shut = is_shut_image(plan, record);
  if (shut || record.step == plan::Step::kRootfs) error.detail = plan.image.rootfs;
  error.fix = shut ? plan::kReadableFix : fix_for(record);
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
  const std::string& program = plan.argv.front();
  const bool host = plan.image.is_host();
  const bool shut =
      record.error == EACCES && !is_no_program(host ? "/" : plan.image.rootfs, program);
  Error error = host_lacks("interpreter", record.error, program,
                           shut   ? plan::kReadableFix
                           : host ? "install it on this host, or name an image with --rootfs"
                                  : plan::kRebuildFix);
  error.stage = "child";
  return error;
}

}  // namespace sbx::supervise
