#include "runtime/base/places.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "runtime/base/sys.h"

namespace sbx {
namespace {

constexpr mode_t kOthersChange = S_IWGRP | S_IWOTH;

// SECURITY: what is followed here could be changed to point elsewhere later.
Result<UniqueFd> open_itself(const std::string& path, const std::string& way_out) {
  auto fd = sys::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (fd) return fd;
  std::error_code unresolved;
  if (!std::filesystem::is_symlink(path, unresolved)) {
    return host_lacks("open", fd.error().sys_errno, path, way_out);
  }
  const std::string target = std::filesystem::canonical(path, unresolved).string();
  return host_lacks("open", 0, path + " is a symbolic link",
                    target.empty() ? way_out : "name the directory itself: " + target);
}

Result<void> check_is_private(const std::string& path, const UniqueFd& fd,
                              const PrivateOwner& owner) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return sys_error("fstat", path);
  const std::string sure = owner.way_out + "; or, where nothing else uses it, ";
  if (info.st_uid != owner.uid) {
    return host_lacks("open", 0,
                      fmt::format("{} belongs to somebody else (uid {})", path, info.st_uid),
                      fmt::format("{}chown -R {} {}", sure, owner.uid, path));
  }
  const bool changed = (info.st_mode & kOthersChange) != 0;
  const bool open = (info.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  if (!open || (!changed && owner.may_be_read && owner.may_be_read(fd))) return {};
  return host_lacks("open", 0,
                    fmt::format("{} may be {} by others", path, changed ? "changed" : "read"),
                    fmt::format("{}chmod 700 {}", sure, path));
}

}  // namespace

Error name_disk_failure(Error error) {
  const int cause = error.sys_errno;
  if (sys::is_full(cause)) {
    error.fix = kMakeRoom;
  } else if (cause == EROFS) {
    error.fix = "mount the file system that it is on for writing";
  } else if (cause == EFBIG) {
    error.fix =
        "allow larger files where this is started from: ulimit -f, or LimitFSIZE= of the unit";
  } else if (cause == EIO) {
    error.fix = "see what the kernel's log (dmesg) says of the disk that it is on";
  } else {
    return error;
  }
  error.code = ErrorCode::kHost;
  return error;
}

std::string path_from_environment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value != '/') return {};
  const std::string_view all = value;
  return std::string(all.substr(0, all.find(':')));
}

std::string without_end_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool FreshDirectories::hold(const std::string& path) const {
  return std::find(paths_.begin(), paths_.end(), path) != paths_.end();
}

FreshDirectories::~FreshDirectories() {
  // One that is in use by now, or out of reach, stays.
  for (auto path = paths_.rbegin(); path != paths_.rend(); ++path) (void)::rmdir(path->c_str());
}

Result<void> make_with_parents(const std::string& wanted, mode_t mode, FreshDirectories* fresh) {
  const std::string path = without_end_slash(wanted);
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const bool last = slash == std::string::npos;
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), last ? mode : 0755) == 0) {
      if (fresh != nullptr) fresh->add(part);
    } else if (errno != EEXIST) {
      const int failure = errno;
      if (sys::is_full(failure)) return host_lacks("mkdir", failure, part, kMakeRoom);
      const std::string whose =
          failure == EACCES ? fmt::format(" as a directory of uid {}", ::geteuid()) : "";
      return host_lacks("mkdir", failure, part,
                        fmt::format("make {}{}, or name another place", path, whose));
    }
    if (last) return {};
  }
}

Result<UniqueFd> private_directory(const std::string& wanted, const PrivateOwner& owner,
                                   FreshDirectories& fresh) {
  const std::string path = without_end_slash(wanted);
  SBX_TRY(make_with_parents(path, 0700, &fresh));
  SBX_ASSIGN(UniqueFd fd, open_itself(path, owner.way_out));
  if (fresh.hold(path) && owner.uid != ::geteuid()) {
    // Still what was made, whoever may move directories about where it lies.
    SBX_TRY(check_is_private(path, fd, {.uid = ::geteuid(), .way_out = owner.way_out}));
    if (::fchown(fd.get(), owner.uid, owner.gid) != 0) return sys_error("fchown", path);
  }
  SBX_TRY(check_is_private(path, fd, owner));
  return fd;
}

}  // namespace sbx
