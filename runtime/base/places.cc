#include "runtime/base/places.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "runtime/base/sys.h"

namespace sbx {

Error name_disk_failure(Error error) {
  const int cause = error.sys_errno;
  if (sys::is_full(cause)) {
    error.fix = kMakeRoom;
  } else if (cause == EROFS) {
    error.fix = "mount the file system that it is on for writing";
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

FreshDirectories::~FreshDirectories() {
  // One that is in use by now, or out of reach, stays.
  for (auto path = paths_.rbegin(); path != paths_.rend(); ++path) (void)::rmdir(path->c_str());
}

Result<void> make_with_parents(const std::string& path, mode_t mode, FreshDirectories* fresh) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const bool last = slash == std::string::npos;
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), last ? mode : 0755) == 0) {
      if (fresh != nullptr) fresh->add(part);
    } else if (errno != EEXIST) {
      const int failure = errno;
      return host_lacks("mkdir", failure, part,
                        sys::is_full(failure) ? kMakeRoom : "make it, or name another place");
    }
    if (last) return {};
  }
}

}  // namespace sbx
