#include "runtime/daemon/audit_verify.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
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
constexpr std::size_t kNamed = 100;  // problems, before the others are counted
constexpr int kMaxTries = 10'000;

// A descriptor's first bytes for an istream, with the errno of a failure, which ends them.
class FileBytes final : public std::streambuf {
 public:
  FileBytes(const UniqueFd& fd, std::uint64_t size) : fd_(fd.get()), left_(size) {}
  [[nodiscard]] int error() const { return error_; }

 protected:
  int_type underflow() override {
    ssize_t got = 0;
    do {
      got = ::read(fd_, buffer_.data(), std::min<std::uint64_t>(buffer_.size(), left_));
    } while (got < 0 && errno == EINTR);
    if (got < 0) error_ = errno;
    if (got <= 0) return traits_type::eof();
    left_ -= static_cast<std::uint64_t>(got);
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
    return traits_type::to_int_type(buffer_.front());
  }

 private:
  int fd_;
  std::uint64_t left_;
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

// "" when there is none.
Result<std::string> read_head(const std::string& path) {
  auto head = sys::read_file(path + ".head", kMaxHead);
  if (!head && head.error().sys_errno == ENOENT) return std::string();
  return head;
}

// How long the file was while the head said this, whatever is appended meanwhile.
struct Moment {
  std::string head;
  std::uint64_t size = 0;
};
Result<Moment> read_moment(const UniqueFd& file, const std::string& path) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    SBX_ASSIGN(std::string head, read_head(path));
    struct stat info{};
    if (::fstat(file.get(), &info) != 0) return sys_error("fstat", path);
    SBX_ASSIGN(const std::string after, read_head(path));
    if (head == after) return Moment{std::move(head), static_cast<std::uint64_t>(info.st_size)};
  }
  return host_lacks("read", 0, path + ".head changes faster than it can be read",
                    "try again, or verify copies of both files");
}

Result<AuditReport> verify_file(const std::string& path) {
  // What is no file has no lines, which must not pass for a chain that is intact.
  auto opened = sys::open_regular(AT_FDCWD, path, O_RDONLY);
  if (!opened) {
    Error error = std::move(opened).error();
    if (error.code == ErrorCode::kInvalid) error.fix = "name the file: sbxd audit verify FILE";
    return error;
  }
  SBX_ASSIGN(const Moment moment, read_moment(*opened, path));
  FileBytes bytes(*opened, moment.size);
  std::istream file(&bytes);
  const AuditReport report = verify_audit(file, moment.head);
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
  const std::size_t named = std::min(report->problems.size(), kNamed);
  for (std::size_t i = 0; i < named; ++i) fmt::print("NOT INTACT: {}\n", report->problems[i]);
  if (report->problems.size() > named) {
    fmt::print("NOT INTACT: {} more of such\n", report->problems.size() - named);
  }
  fmt::print("{}: {} lines, {}\n", *path, report->lines,
             report->problems.empty() ? "intact" : "not intact");
  return report->problems.empty() ? 0 : 1;
}

}  // namespace sbx::daemon
