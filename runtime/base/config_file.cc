#include "runtime/base/config_file.h"

#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "runtime/base/sys.h"
#include "runtime/base/toml.h"

namespace sbx {
namespace {

enum class Absent { kIsAnError, kIsFine };

Result<std::optional<ConfigFile>> read(const std::string& path, Absent absent) {
  auto text = sys::read_file(path, kMaxTomlBytes);
  if (text) return std::optional(ConfigFile{path, *std::move(text)});
  const Error& error = text.error();
  const bool not_there = error.sys_errno == ENOENT || error.sys_errno == ENOTDIR;
  if (not_there && absent == Absent::kIsFine) return std::optional<ConfigFile>();
  // Without an errno it can be read, and is no configuration: a device, a directory, too long.
  const std::string readable = error.sys_errno == 0 ? "" : "make " + path + " readable, or ";
  return host_lacks("read", error.sys_errno, path + ": " + error.detail,
                    readable + "name another with --config");
}

// "" where the environment names no place.
std::string user_directory() {
  // XDG base directories: a relative value is to be ignored.
  const char* base = std::getenv("XDG_CONFIG_HOME");
  if (base != nullptr && base[0] == '/') return base;
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.config";
  return {};
}

}  // namespace

Result<std::optional<ConfigFile>> find_config_file(const std::string& named,
                                                   std::string_view name) {
  if (!named.empty()) return read(named, Absent::kIsAnError);
  std::vector<std::string> directories = {"/etc"};
  if (std::string user = user_directory(); !user.empty()) directories.push_back(std::move(user));
  for (const std::string& directory : directories) {
    SBX_ASSIGN(auto found, read(directory + "/sbx/" + std::string(name), Absent::kIsFine));
    if (found) return found;
  }
  return std::optional<ConfigFile>();
}

}  // namespace sbx
