#include "agentd/config/held_state.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "agentd/config/places.h"
#include "runtime/base/sys.h"

namespace agentd::config {
namespace {

constexpr const char* kDatabaseLog = "agentd.db-wal";  // is there while the database is open

sbx::Error gone(const std::string& path) {
  return sbx::host_lacks("stat", 0, path + " was moved away, removed or replaced",
                         "put the state directory back, or end agentd and start it again");
}

}  // namespace

sbx::Result<HeldState> HeldState::open(const std::string& state_dir) {
  HeldState state(state_dir);
  SBX_ASSIGN(state.directory_, sbx::sys::open(state_dir, O_PATH | O_DIRECTORY, 0));
  for (const char* const name : {"", kLock, kDatabase, kDatabaseLog}) {
    SBX_ASSIGN(const Identity identity, state.look(name));
    state.files_.push_back({name, identity});
  }
  return state;
}

sbx::Result<void> HeldState::check() const {
  for (const File& file : files_) {
    SBX_ASSIGN(const Identity found, look(file.name));
    if (found != file.identity) return gone(path_of(file.name));
  }
  return {};
}

// The files by the directory that is held, which the first look has found in its place.
sbx::Result<HeldState::Identity> HeldState::look(const char* name) const {
  struct stat info{};
  const int looked = *name == '\0' ? ::stat(path_.c_str(), &info)
                                   : ::fstatat(directory_.get(), name, &info, AT_SYMLINK_NOFOLLOW);
  if (looked != 0 && errno != ENOENT && errno != ENOTDIR) {
    return sbx::host_lacks("stat", errno, path_of(name), "let agentd's user look at it again");
  }
  if (looked != 0) return gone(path_of(name));
  return Identity{info.st_dev, info.st_ino};
}

std::string HeldState::path_of(const char* name) const {
  return *name == '\0' ? path_ : path_ + "/" + name;
}

}  // namespace agentd::config
