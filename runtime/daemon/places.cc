#include "runtime/daemon/places.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/places.h"
#include "runtime/base/sys.h"

namespace sbx::daemon {
namespace {

constexpr const char* kRunDirectory = "/run/sbx";

std::string user_state_dir() {
  std::string systemd = path_from_environment("STATE_DIRECTORY");
  if (!systemd.empty()) return systemd;
  if (std::string xdg = path_from_environment("XDG_STATE_HOME"); !xdg.empty()) return xdg + "/sbx";
  const std::string home = path_from_environment("HOME");
  return home.empty() ? home : home + "/.local/state/sbx";
}

std::string user_socket() {
  const std::string runtime = path_from_environment("XDG_RUNTIME_DIR");
  return runtime.empty() ? runtime : runtime + "/sbx/sbxd.sock";
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// SECURITY: who may rename what is in it decides what the daemon finds there.
Result<void> check_top(const std::string& path, const std::optional<ServiceUser>& user) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return sys_error("stat", path);
  const bool trusted =
      info.st_uid == 0 || info.st_uid == ::geteuid() || (user && info.st_uid == user->uid);
  const bool shared = (info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0;
  if (trusted && !shared) return {};
  return host_lacks("open", 0,
                    path + (trusted ? " may be changed by everybody" : " belongs to somebody else"),
                    "chown it to root and chmod o-w, or name another place");
}

// SECURITY: opened without following a link, so that what is given away is what was looked at.
Result<void> make_own(const std::string& path, const std::optional<ServiceUser>& user) {
  SBX_TRY(make_with_parents(path, 0700));
  SBX_ASSIGN(const UniqueFd fd, sys::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return sys_error("fstat", path);
  const uid_t owner = user ? user->uid : ::geteuid();
  const bool fresh = user && info.st_uid == 0;
  if (!fresh && info.st_uid != owner) {
    return host_lacks("open", 0, path + " belongs to somebody else",
                      fmt::format("chown -R {} {}, or name another place", owner, path));
  }
  if (fresh && ::fchown(fd.get(), user->uid, user->gid) != 0) return sys_error("fchown", path);
  if (::fchmod(fd.get(), 0700) != 0) return sys_error("fchmod", path);
  return {};
}

}  // namespace

Result<Places> choose_places(const DaemonConfig& config, const policy::RuntimeConfig& runtime,
                             bool root) {
  Places places;
  places.socket = config.socket;
  places.state_dir = config.state_dir;
  places.runtime_dir = runtime.runtime_dir;
  if (places.socket.empty()) {
    places.socket = root ? std::string(kRunDirectory) + "/sbxd.sock" : user_socket();
  }
  if (places.state_dir.empty()) places.state_dir = root ? "/var/lib/sbx" : user_state_dir();
  if (places.state_dir.empty()) {
    return invalid("there is no home for the state of sbxd", "give --state-dir DIR");
  }
  if (places.runtime_dir.empty()) {
    places.runtime_dir =
        root ? std::string(kRunDirectory) + "/sbxd" : path_from_environment("RUNTIME_DIRECTORY");
  }
  return places;
}

Result<void> make_places(const Places& places, const std::optional<ServiceUser>& user) {
  // Ours and root's sbx-run's: the service's user and its clients must get through, also where an
  // administrator's umask or an earlier version shut it.
  if (user && (::mkdir(kRunDirectory, 0755) == 0 || errno == EEXIST)) {
    if (::chmod(kRunDirectory, 0755) != 0) return sys_error("chmod", kRunDirectory);
  }
  if (!places.socket.empty()) SBX_TRY(make_with_parents(parent_of(places.socket), 0755));
  SBX_TRY(make_with_parents(places.state_dir, user ? 0755 : 0700));
  SBX_TRY(check_top(places.state_dir, user));
  SBX_TRY(make_own(places.audit_dir(), user));
  SBX_TRY(make_own(places.sessions_dir(), user));
  if (!places.runtime_dir.empty()) SBX_TRY(make_own(places.runtime_dir, user));
  return {};
}

}  // namespace sbx::daemon
