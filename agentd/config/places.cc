#include "agentd/config/places.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/base/places.h"
#include "runtime/base/sys.h"

namespace agentd::config {
namespace {

constexpr const char* kRootSocket = "/run/agentd/agentd.sock";
constexpr const char* kRootSbxdSocket = "/run/sbx/sbxd.sock";

std::string below(const char* variable, std::string_view path) {
  std::string base = sbx::path_from_environment(variable);
  if (!base.empty()) base += path;
  return base;
}

std::string state_directory(bool root) {
  std::string systemd = sbx::path_from_environment("STATE_DIRECTORY");
  if (!systemd.empty()) return systemd;
  if (root) return "/var/lib/agentd";
  if (std::string xdg = below("XDG_STATE_HOME", "/agentd"); !xdg.empty()) return xdg;
  return below("HOME", "/.local/state/agentd");
}

std::string listening_socket(bool root) {
  if (std::string systemd = below("RUNTIME_DIRECTORY", "/agentd.sock"); !systemd.empty()) {
    return systemd;
  }
  return root ? kRootSocket : below("XDG_RUNTIME_DIR", "/sbx/agentd.sock");
}

// What the variable names; "" when it is not set, or empty.
sbx::Result<std::string> named_socket(const char* variable) {
  const char* const value = std::getenv(variable);
  const std::string named = value == nullptr ? "" : value;
  if (named.empty() || named.front() == '/') return named;
  return sbx::invalid(fmt::format("{} is {}, which is not an absolute path", variable, named),
                      fmt::format("give {} an absolute path, or unset it", variable));
}

std::string usual_socket(const char* system, std::string_view in_runtime_dir) {
  const std::string users = below("XDG_RUNTIME_DIR", in_runtime_dir);
  if (::access(system, W_OK) == 0 || users.empty()) return system;
  // One that is there and not for us: connecting says so.
  const bool only_system = ::access(users.c_str(), F_OK) != 0 && ::access(system, F_OK) == 0;
  return only_system ? system : users;
}

// Empty, or agentd's since it was: each file that agentd makes there is 0600, its lock first.
bool may_be_read(const std::string& path) {
  for (const char* const name : {kLock, kDatabase}) {
    struct stat info{};
    if (::lstat((path + "/" + name).c_str(), &info) != 0) continue;
    return S_ISREG(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 0077) == 0;
  }
  std::error_code unread;
  return std::filesystem::is_empty(path, unread) && !unread;
}

}  // namespace

sbx::Result<Places> choose_places(const AgentConfig& config, bool root) {
  Places places{config.socket, config.sbxd_socket, config.state_dir};
  if (places.socket.empty()) places.socket = listening_socket(root);
  if (places.sbxd_socket.empty()) {
    SBX_ASSIGN(places.sbxd_socket, named_socket("SBX_SOCKET"));
  }
  if (places.state_dir.empty()) places.state_dir = state_directory(root);
  if (places.state_dir.empty()) {
    return sbx::invalid("there is no home for the state of agentd", "give --state-dir DIR");
  }
  return places;
}

sbx::Result<void> make_places(const Places& places) {
  if (!places.socket.empty()) {
    const std::string parent = places.socket.substr(0, places.socket.rfind('/'));
    if (!parent.empty()) SBX_TRY(sbx::make_with_parents(parent, 0755));
  }
  sbx::FreshDirectories fresh;
  SBX_TRY(sbx::private_directory(
      places.state_dir,
      {.uid = ::geteuid(),
       .gid = ::getegid(),
       .way_out = "name another with --state-dir",
       .may_be_read = [&](const sbx::UniqueFd&) { return may_be_read(places.state_dir); }},
      fresh));
  fresh.keep();
  return {};
}

sbx::Result<sbx::UniqueFd> lock_state(const std::string& state_dir) {
  const std::string path = state_dir + "/" + kLock;
  auto file = sbx::sys::open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!file) {
    const int why = file.error().sys_errno;
    if (why == ELOOP || why == EISDIR || why == ENXIO) {
      return sbx::host_lacks("open", 0, path + " is not a regular file",
                             "move it away; a new one is made");
    }
    return sbx::host_lacks("open", why, path,
                           sbx::sys::is_full(why)
                               ? sbx::kMakeRoom
                               : "make the state directory writable for agentd, or name another "
                                 "with --state-dir");
  }
  // Of the open file, so it ends with this process, however that ends.
  if (::flock(file->get(), LOCK_EX | LOCK_NB) == 0) return *std::move(file);
  if (errno != EWOULDBLOCK) return sbx::sys_error("flock", path);
  return sbx::host_lacks("flock", EWOULDBLOCK, "another agentd works in " + state_dir,
                         "end that one first, or name another directory with --state-dir");
}

sbx::Result<std::string> find_agentd_socket(const std::string& given) {
  if (!given.empty()) return given;
  SBX_ASSIGN(std::string named, named_socket("AGENTD_SOCKET"));
  return named.empty() ? usual_socket(kRootSocket, "/sbx/agentd.sock") : named;
}

std::string find_sbxd_socket(const std::string& configured) {
  return configured.empty() ? usual_socket(kRootSbxdSocket, "/sbx/sbxd.sock") : configured;
}

}  // namespace agentd::config
