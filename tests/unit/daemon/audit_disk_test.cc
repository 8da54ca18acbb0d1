// The audit file on a disk that is full: a small tmpfs in a namespace of its own.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/base/sys.h"
#include "runtime/daemon/audit_log.h"
#include "tests/support/process.h"

namespace sbx::daemon {
namespace {

constexpr int kNoNamespace = 77;

bool mount_small_disk(const std::string& mount_point) {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  return ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
         sys::write_file("/proc/self/setgroups", "deny") &&
         sys::write_file("/proc/self/uid_map", "0 " + uid + " 1") &&
         sys::write_file("/proc/self/gid_map", "0 " + gid + " 1") &&
         ::mount("", mount_point.c_str(), "tmpfs", 0, "size=1m") == 0;
}

void fill(const std::string& mount_point) {
  std::ofstream file(mount_point + "/fill");
  const std::string page(4096, 'x');
  while (file.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
  }
}

bool tells_of_a_full_disk(const Error& error) {
  return error.code == ErrorCode::kHost && error.sys_errno == ENOSPC && !error.fix.empty() &&
         to_string(error).find("audit.jsonl") != std::string::npos;
}

AuditReport verify(const std::string& directory) {
  std::ifstream file(directory + "/audit.jsonl");
  return verify_audit(file, test::read_text(directory + "/audit.jsonl.head"));
}

// Each runs in a child: 0, or the number of what did not hold.
using Body = int (*)(const std::string& mount_point);

void on_small_disk(Body body) {
  const test::TemporaryDirectory mount_point;
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(mount_small_disk(mount_point.path()) ? body(mount_point.path()) : kNoNamespace);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "no user namespace to mount it in";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(AuditDisk, TakesTheLinesOfAllRunsThatItLetStart) {
  on_small_disk([](const std::string& mount_point) {
    const std::string directory = mount_point + "/audit";
    auto log = AuditLog::open(directory);
    if (!log) return 1;
    std::vector<AuditLog::Room> runs;
    for (int i = 0; i < 4; ++i) {
      if (!log->check()) return 2;
      runs.push_back(log->take_room());
    }
    fill(mount_point);
    // As many as room was made for beforehand.
    Result<void> checked;
    while ((checked = log->check())) runs.push_back(log->take_room());
    if (runs.size() > 5 || !tells_of_a_full_disk(checked.error()) || log->healthy()) return 3;
    const std::string longest =
        R"("event":"run","x":")" + std::string(kMaxAuditLine - 200, 'x') + '"';
    const std::size_t lines = runs.size();
    while (!runs.empty()) {
      if (!log->append(longest)) return 4;
      runs.pop_back();
    }
    if (log->kept() != 0 || log->lines() != lines) return 5;
    if (const auto report = verify(directory); report.lines != lines || !report.problems.empty()) {
      return 6;
    }
    if (log->check()) return 7;
    ::unlink((mount_point + "/fill").c_str());
    return log->check() && log->healthy() ? 0 : 8;
  });
}

TEST(AuditDisk, NamesTheFileAndTheFixWhenATornLineCannotBeEnded) {
  on_small_disk([](const std::string& mount_point) {
    const std::string directory = mount_point + "/audit";
    std::string file = directory + "/audit.jsonl";
    if (!AuditLog::open(directory)) return 1;
    std::string torn = audit_line(std::nullopt, "2026-01-01T00:00:00.000Z", "");
    torn.resize(4096, 'x');  // the page has no room
    std::ofstream(file) << torn;
    fill(mount_point);
    const auto refused = AuditLog::open(directory);
    if (refused) return 2;
    if (!tells_of_a_full_disk(refused.error())) return 3;
    ::unlink((mount_point + "/fill").c_str());
    return AuditLog::open(directory) && verify(directory).problems.empty() ? 0 : 4;
  });
}

}  // namespace
}  // namespace sbx::daemon
