#include "runtime/daemon/places.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "runtime/base/as_user.h"
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

// One for each user that root's starts become: what is in it is his alone.
std::string records_of(const std::string& user) {
  const std::string usual = std::string(kRunDirectory) + "/sbxd";
  return user == DaemonConfig{}.user ? usual : usual + "-" + user;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

constexpr const char* kOtherState = "name another with --state-dir";
constexpr const char* kOtherRecords = "name another as runtime_dir in runtime.toml";

// SECURITY: who may rename what is in it decides what the daemon finds there.
Result<void> check_top(const std::string& path, const std::optional<ServiceUser>& user) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return host_lacks("stat", errno, path, kOtherState);
  const bool trusted =
      info.st_uid == 0 || info.st_uid == ::geteuid() || (user && info.st_uid == user->uid);
  const bool shared = (info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0;
  if (!trusted) {
    const std::string chown = user ? fmt::format("chown root {}, or ", path) : std::string();
    return host_lacks("open", 0, path + " belongs to somebody else", chown + kOtherState);
  }
  if (!shared) return {};
  return host_lacks("open", 0, path + " may be changed by everybody",
                    fmt::format("chmod o-w {}, or {}", path, kOtherState));
}

// The first directory on the way to `path`, itself included, that `user` may not pass; empty: none.
// Asked of the kernel as him, since modes do not tell all (ACLs). Should it not be asked so, the
// start ends later. One thread.
std::string first_shut(const std::string& path, const ServiceUser& user) {
  const AsUser him(user.uid, user.gid);
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    // "." needs the right to pass the directory itself.
    const auto passed = sys::open(part + "/.", O_PATH | O_DIRECTORY);
    if (!passed && passed.error().sys_errno == EACCES) return part;
    if (slash == std::string::npos) return std::string();
  }
}

Result<void> check_way(const std::string& path, const std::optional<ServiceUser>& user,
                       const char* way_out) {
  if (!user) return {};
  const std::string shut = first_shut(path, *user);
  if (shut.empty()) return {};
  struct stat info{};
  if (::stat(shut.c_str(), &info) != 0) return host_lacks("stat", errno, shut, way_out);
  const char who = info.st_uid == user->uid ? 'u' : info.st_gid == user->gid ? 'g' : 'o';
  return host_lacks("open", EACCES,
                    fmt::format("{}: the user '{}' cannot pass {}", path, user->name, shut),
                    fmt::format("chmod {}+x {}, or {}", who, shut, way_out));
}

Result<void> make_own(const std::string& path, const std::optional<ServiceUser>& user,
                      const char* way_out, FreshDirectories& fresh) {
  PrivateOwner owner{.uid = ::geteuid(), .gid = ::getegid(), .way_out = way_out};
  if (user) {
    owner.uid = user->uid;
    owner.gid = user->gid;
  }
  SBX_TRY(private_directory(path, owner, fresh));
  return {};
}

// Ours and root's sbx-run's: the service's user and its clients must get through, also past an
// administrator's umask.
Result<void> make_run_directory(const Places& places) {
  if (::mkdir(kRunDirectory, 0755) == 0) {
    if (::chmod(kRunDirectory, 0755) != 0) return sys_error("chmod", kRunDirectory);
    return {};
  }
  const std::string below = std::string(kRunDirectory) + "/";
  const bool used = places.socket.starts_with(below) || places.runtime_dir.starts_with(below);
  struct stat info{};
  if (!used || ::stat(kRunDirectory, &info) != 0 || (info.st_mode & S_IXOTH) != 0) return {};
  return host_lacks("open", EACCES, std::string(kRunDirectory) + " is shut to the service's user",
                    std::string("chmod 755 ") + kRunDirectory);
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
        root ? records_of(config.user) : path_from_environment("RUNTIME_DIRECTORY");
  }
  return places;
}

Result<void> make_place_of_socket(const Places& places, const std::optional<ServiceUser>& user,
                                  FreshDirectories& fresh) {
  if (user) SBX_TRY(make_run_directory(places));
  if (places.socket.empty()) return {};
  return make_with_parents(parent_of(places.socket), 0755, &fresh);
}

Result<void> make_places_of_state(const Places& places, const std::optional<ServiceUser>& user,
                                  FreshDirectories& fresh) {
  SBX_TRY(make_with_parents(places.state_dir, user ? 0755 : 0700, &fresh));
  SBX_TRY(check_top(places.state_dir, user));
  SBX_TRY(check_way(places.state_dir, user, kOtherState));
  SBX_TRY(make_own(places.audit_dir(), user, kOtherState, fresh));
  SBX_TRY(make_own(places.sessions_dir(), user, kOtherState, fresh));
  if (places.runtime_dir.empty()) return {};
  SBX_TRY(make_own(places.runtime_dir, user, kOtherRecords, fresh));
  return check_way(places.runtime_dir, user, kOtherRecords);
}

int lock_alone(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
  if (errno != EWOULDBLOCK) return errno;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

}  // namespace sbx::daemon
