#include "runtime/base/places.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "runtime/base/sys.h"

namespace sbx {

std::string path_from_environment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value != '/') return {};
  const std::string_view all = value;
  return std::string(all.substr(0, all.find(':')));
}

Result<void> make_with_parents(const std::string& path, mode_t mode) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const bool last = slash == std::string::npos;
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), last ? mode : 0755) != 0 && errno != EEXIST) {
      const int failure = errno;
      return host_lacks("mkdir", failure, part,
                        sys::is_full(failure) ? kMakeRoom : "make it, or name another place");
    }
    if (last) return {};
  }
}

}  // namespace sbx
