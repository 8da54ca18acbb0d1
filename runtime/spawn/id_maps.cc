#include "runtime/spawn/id_maps.h"

#include <linux/magic.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "runtime/base/sys.h"

namespace sbx::spawn {
namespace {

// SECURITY: the file's own file system is checked, so that a map goes nowhere but to procfs
// (CVE-2025-52881).
Result<void> write_proc(const std::string& path, const std::string& value) {
  SBX_ASSIGN(const UniqueFd fd, sys::open(path, O_WRONLY));
  if (!sys::has_magic(fd.get(), PROC_SUPER_MAGIC)) {
    errno = EOPNOTSUPP;
    return sys_error("write", path + " is not on procfs");
  }
  auto written = sys::write_all(fd.get(), value);
  if (!written) return unexpected(std::move(written).error().with_context(path));
  return written;
}

Result<void> run_mapper(const char* program, pid_t pid, std::uint32_t own, std::uint32_t first,
                        std::uint32_t count) {
  std::vector<std::string> words{program,
                                 std::to_string(pid),
                                 "0",
                                 std::to_string(own),
                                 "1",
                                 "1",
                                 std::to_string(first),
                                 std::to_string(count)};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  char* const no_environment[] = {nullptr};
  pid_t mapper = -1;
  if (const int error =
          ::posix_spawn(&mapper, program, nullptr, nullptr, argv.data(), no_environment);
      error != 0) {
    errno = error;
    return sys_error("posix_spawn", program);
  }
  int status = 0;
  pid_t waited = -1;
  do {
    waited = ::waitpid(mapper, &status, 0);
  } while (waited < 0 && errno == EINTR);
  if (waited != mapper) return sys_error("waitpid", program);  // SIGCHLD ignored: nobody can tell
  if (status == 0) return {};
  return host_lacks(program, 0, "it refused the caller's subordinate ids",
                    "check /etc/subuid and /etc/subgid (usermod --add-subuids, --add-subgids)");
}

// The user himself as 0, and the ids of his runs behind him.
std::string two_lines(std::uint32_t own, std::uint32_t first, std::uint32_t count) {
  return "0 " + std::to_string(own) + " 1\n1 " + std::to_string(first) + " " +
         std::to_string(count) + "\n";
}

}  // namespace

Result<void> write_outer_maps(pid_t pid, const SpawnerOptions& options) {
  const std::string proc = "/proc/" + std::to_string(pid);
  if (options.ids != plan::IdMode::kSingle) SBX_TRY(sys::check_own_proc());
  switch (options.ids) {
    case plan::IdMode::kSingle:
      return {};
    case plan::IdMode::kSubordinate:
      if (::geteuid() == 0) {
        SBX_TRY(write_proc(proc + "/uid_map",
                           two_lines(options.host_uid, options.sub_uid, options.id_count - 1)));
        return write_proc(proc + "/gid_map",
                          two_lines(options.host_gid, options.sub_gid, options.id_count - 1));
      }
      SBX_TRY(run_mapper("/usr/bin/newuidmap", pid, options.host_uid, options.sub_uid,
                         options.id_count - 1));
      return run_mapper("/usr/bin/newgidmap", pid, options.host_gid, options.sub_gid,
                        options.id_count - 1);
    case plan::IdMode::kRange: {
      const std::string count = " " + std::to_string(options.id_count);
      auto written = write_proc(proc + "/uid_map", "0 " + std::to_string(options.host_uid) + count);
      if (written) {
        written = write_proc(proc + "/gid_map", "0 " + std::to_string(options.host_gid) + count);
      }
      if (!written && written.error().sys_errno == EPERM) {
        written.error().code = ErrorCode::kHost;
        written.error().fix =
            "start it with all of root's capabilities and the ids of uid_base (--print-config), or "
            "as an ordinary user";
      }
      return written;
    }
  }
  return {};
}

Result<void> write_own_map(const SpawnerOptions& options) {
  SBX_TRY(write_proc("/proc/self/setgroups", "deny"));
  SBX_TRY(write_proc("/proc/self/uid_map", "0 " + std::to_string(options.host_uid) + " 1"));
  return write_proc("/proc/self/gid_map", "0 " + std::to_string(options.host_gid) + " 1");
}

}  // namespace sbx::spawn
