#include "runtime/daemon/audit_verify.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "runtime/base/sys.h"
#include "runtime/daemon/audit_chain.h"
#include "runtime/daemon/config.h"
#include "runtime/daemon/places.h"

namespace sbx::daemon {
namespace {

constexpr std::size_t kMaxHead = 4096;

Result<std::string> audit_path(const Arguments& arguments) {
  if (!arguments.audit_file.empty()) return arguments.audit_file;
  SBX_ASSIGN(DaemonConfig config, load_daemon_config(arguments.config));
  if (!arguments.state_dir.empty()) config.state_dir = arguments.state_dir;
  SBX_ASSIGN(const Places places, choose_places(config, {}, ::geteuid() == 0));
  return places.audit_dir() + "/audit.jsonl";
}

Result<AuditReport> verify_file(const std::string& path) {
  // The head first: lines that come meanwhile are behind it.
  auto head = sys::read_file(path + ".head", kMaxHead);
  if (!head && head.error().sys_errno != ENOENT) return unexpected(std::move(head).error());
  std::ifstream file(path, std::ios::binary);
  if (!file) return sys_error("open", path);
  return verify_audit(file, head ? *head : std::string());
}

}  // namespace

int audit_verify(const Arguments& arguments) {
  const auto path = audit_path(arguments);
  if (!path) {
    fmt::print(stderr, "sbxd: {}\n", to_string(path.error()));
    return 2;
  }
  const auto report = verify_file(*path);
  if (!report) {
    fmt::print(stderr, "sbxd: {}\n", to_string(report.error()));
    return 1;
  }
  for (const std::string& note : report->notes) fmt::print("note: {}\n", note);
  for (const std::string& problem : report->problems) fmt::print("NOT INTACT: {}\n", problem);
  fmt::print("{}: {} lines, {}\n", *path, report->lines,
             report->problems.empty() ? "intact" : "not intact");
  return report->problems.empty() ? 0 : 1;
}

}  // namespace sbx::daemon
