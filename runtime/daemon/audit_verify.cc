#include "runtime/daemon/audit_verify.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <istream>
#include <streambuf>
#include <utility>

#include "runtime/base/sys.h"
#include "runtime/daemon/audit_chain.h"
#include "runtime/daemon/config.h"
#include "runtime/daemon/places.h"

namespace sbx::daemon {
namespace {

constexpr std::size_t kMaxHead = 4096;

// A descriptor's bytes for an istream, with the errno of a failure, which ends them.
class FileBytes final : public std::streambuf {
 public:
  explicit FileBytes(UniqueFd fd) : fd_(std::move(fd)) {}
  [[nodiscard]] int error() const { return error_; }

 protected:
  int_type underflow() override {
    ssize_t got = 0;
    do {
      got = ::read(fd_.get(), buffer_.data(), buffer_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) error_ = errno;
    if (got <= 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
    return traits_type::to_int_type(buffer_.front());
  }

 private:
  UniqueFd fd_;
  std::array<char, 64 * 1024> buffer_;
  int error_ = 0;
};

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
  // What is no file has no lines, which must not pass for a chain that is intact.
  auto opened = sys::open_regular(AT_FDCWD, path, O_RDONLY);
  if (!opened) {
    Error error = std::move(opened).error();
    if (error.code == ErrorCode::kInvalid) error.fix = "name the file: sbxd audit verify FILE";
    return error;
  }
  FileBytes bytes(*std::move(opened));
  std::istream file(&bytes);
  const AuditReport report = verify_audit(file, head ? *head : std::string());
  if (bytes.error() == 0) return report;
  errno = bytes.error();
  return sys_error("read", path);
}

int refuse(const Error& error, int exit_code) {
  fmt::print(stderr, "sbxd: {}\n", to_string(error));
  if (!error.fix.empty()) fmt::print(stderr, "sbxd: fix: {}\n", error.fix);
  return exit_code;
}

}  // namespace

int audit_verify(const Arguments& arguments) {
  const auto path = audit_path(arguments);
  if (!path) return refuse(path.error(), 2);
  const auto report = verify_file(*path);
  if (!report) return refuse(report.error(), 1);
  for (const std::string& note : report->notes) fmt::print("note: {}\n", note);
  for (const std::string& problem : report->problems) fmt::print("NOT INTACT: {}\n", problem);
  fmt::print("{}: {} lines, {}\n", *path, report->lines,
             report->problems.empty() ? "intact" : "not intact");
  return report->problems.empty() ? 0 : 1;
}

}  // namespace sbx::daemon
