#include "http/unreachable.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <system_error>
#include <vector>

#include "runtime/base/sys.h"

namespace sbx::http {
namespace {

constexpr std::size_t kMaxNames = 4U << 20;
constexpr const char* kUsers = "/etc/passwd";
constexpr const char* kGroups = "/etc/group";

// The first field of the line whose third is `id`; the number itself where there is none.
std::string name_of(const char* file, std::uint32_t id) {
  std::string number = std::to_string(id);
  const auto text = sys::read_file(file, kMaxNames);
  std::istringstream lines(text ? *text : std::string());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    std::string password;
    std::string its_id;
    std::getline(fields, name, ':');
    std::getline(fields, password, ':');
    std::getline(fields, its_id, ':');
    if (its_id == number && !name.empty()) return name;
  }
  return number;
}

bool is_ours(gid_t group) {
  if (::getegid() == group) return true;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  return count > 0 &&
         std::find(groups.begin(), groups.begin() + count, group) != groups.begin() + count;
}

Unreachable not_permitted(const std::string& daemon, const std::string& socket,
                          const std::string& elsewhere) {
  struct stat info{};
  if (::stat(socket.c_str(), &info) != 0) {
    return {
        fmt::format("permission denied: the way to {}, the socket of {}, is closed to this user",
                    socket, daemon),
        fmt::format("be the user whose {} it is, or name another one's socket with {}", daemon,
                    elsewhere)};
  }
  const std::string owner = name_of(kUsers, info.st_uid);
  const std::string group = name_of(kGroups, info.st_gid);
  std::string text =
      fmt::format("permission denied: {}, the socket of {}, is {}:{} with mode {:04o}", socket,
                  daemon, owner, group, info.st_mode & 07777U);
  // SECURITY: whoever joins root's group gets far more than this socket.
  if ((info.st_mode & S_IWGRP) != 0 && info.st_gid != 0 && !is_ours(info.st_gid)) {
    return {std::move(text),
            fmt::format("join the group {} (usermod -aG {} {}), then log in or start again", group,
                        group, name_of(kUsers, ::geteuid()))};
  }
  if (info.st_uid == 0) {
    return {std::move(text),
            fmt::format("it is root's alone: let root give it a group of its own, or name another "
                        "{}'s socket with {}",
                        daemon, elsewhere)};
  }
  return {std::move(text), fmt::format("be {}, whose it is, or name another {}'s socket with {}",
                                       owner, daemon, elsewhere)};
}

std::string reason(const ClientError& error) {
  if (error.sys_errno == ENOENT) return ": there is no such socket";
  if (error.sys_errno == ECONNREFUSED) return ": nobody listens on it";
  if (error.sys_errno != 0) return ": " + std::generic_category().message(error.sys_errno);
  return error.detail.empty() ? "" : ": " + error.detail;
}

}  // namespace

Unreachable explain_unreachable(const std::string& daemon, const std::string& socket,
                                const ClientError& error, const std::string& elsewhere) {
  if (error.sys_errno == EACCES || error.sys_errno == EPERM) {
    return not_permitted(daemon, socket, elsewhere);
  }
  return {
      fmt::format("{} does not answer on {}{}", daemon, socket, reason(error)),
      fmt::format("start {0}, or name its socket with {1}; if {0} was started and ended, what it "
                  "wrote to stderr says why",
                  daemon, elsewhere)};
}

}  // namespace sbx::http
