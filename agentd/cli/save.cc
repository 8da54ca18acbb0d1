#include "agentd/cli/save.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/base/escape.h"
#include "runtime/base/sys.h"
#include "runtime/base/utf8.h"

namespace agentd::cli {
namespace {

constexpr std::size_t kMaxName = 200;
constexpr std::size_t kMaxComponents = 64;  // a sandbox's file_depth is 16 unless it was raised
constexpr int kMaxTries = 1000;
constexpr std::uint64_t kBeneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
constexpr const char* kAnother = "name another directory with --save";

// "plot.png" as "plot-2.png".
std::string numbered(const std::string& name, int number) {
  if (number == 1) return name;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return fmt::format("{}-{}", name, number);
  return fmt::format("{}-{}{}", name.substr(0, dot), number, name.substr(dot));
}

sbx::Error unusable(const std::string& path, int sys_errno) {
  return sbx::invalid(fmt::format("nothing can be saved in {}: {}", path,
                                  std::generic_category().message(sys_errno)),
                      kAnother);
}

struct Entry {
  sbx::UniqueFd fd;
  std::string name;
};

sbx::Error all_taken(const std::string& name) {
  return sbx::invalid("too many files are called " + name, kAnother);
}

// The directory of that name in `parent`, made where it is not there.
sbx::Result<Entry> enter(int parent, const std::string& wanted) {
  for (int number = 1; number <= kMaxTries; ++number) {
    std::string name = numbered(wanted, number);
    if (::mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST) {
      return unusable(name, errno);
    }
    auto fd = sbx::sys::open_beneath(parent, name, O_PATH | O_DIRECTORY, 0, kBeneath);
    if (fd) return Entry{*std::move(fd), std::move(name)};
    const int why = fd.error().sys_errno;
    if (why != ELOOP && why != ENOTDIR) return unusable(name, why);
  }
  return all_taken(wanted);
}

sbx::Result<Entry> create(int parent, const std::string& wanted) {
  for (int number = 1; number <= kMaxTries; ++number) {
    std::string name = numbered(wanted, number);
    auto fd = sbx::sys::open_beneath(parent, name, O_WRONLY | O_CREAT | O_EXCL, 0666, kBeneath);
    if (fd) return Entry{*std::move(fd), std::move(name)};
    if (fd.error().sys_errno != EEXIST) return unusable(name, fd.error().sys_errno);
  }
  return all_taken(wanted);
}

}  // namespace

std::string safe_name(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  // Escapes stand for what must not be in a name; their backslashes must not either.
  std::string safe = sbx::escape_for_terminal(name);
  for (char& c : safe) {
    if (c == '\\' || c == '{' || c == '}') c = '_';
  }
  while (!safe.empty() && (safe.front() == '.' || safe.front() == '-')) safe.erase(0, 1);
  if (safe.size() > kMaxName) safe.resize(sbx::utf8_boundary_before(safe, kMaxName));
  return safe.empty() ? "file" : safe;
}

std::vector<std::string> safe_components(std::string_view name) {
  std::vector<std::string> components;
  if (std::count(name.begin(), name.end(), '/') < static_cast<std::ptrdiff_t>(kMaxComponents)) {
    for (std::size_t slash = name.find('/'); slash != std::string_view::npos;
         slash = name.find('/')) {
      const std::string_view component = name.substr(0, slash);
      name.remove_prefix(slash + 1);
      if (component.empty() || component == "." || component == "..") continue;
      components.push_back(safe_name(component));
    }
  }
  components.push_back(safe_name(name));
  return components;
}

sbx::Result<void> check_directory(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path at = fs::absolute(path, error).lexically_normal();
  // Up to what is there: the rest will be made. A link to nothing is there, and no directory.
  while (!error && fs::symlink_status(at, error).type() == fs::file_type::not_found &&
         at.has_relative_path()) {
    at = at.parent_path();
    error.clear();
  }
  if (!fs::is_directory(at, error)) return unusable(path, error ? error.value() : ENOTDIR);
  if (::access(at.c_str(), W_OK | X_OK) != 0) return unusable(path, errno);
  return {};
}

sbx::Result<SaveDirectory> SaveDirectory::open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return unusable(path, error.value());
  auto directory = sbx::sys::open(path, O_PATH | O_DIRECTORY);
  if (!directory) return unusable(path, directory.error().sys_errno);
  return SaveDirectory(path, *std::move(directory));
}

sbx::Result<std::string> SaveDirectory::save(std::string_view name,
                                             std::string_view content) const {
  std::vector<std::string> components = safe_components(name);
  const std::string last = std::move(components.back());
  components.pop_back();
  std::string path = path_;
  sbx::UniqueFd below;
  for (const std::string& component : components) {
    SBX_ASSIGN(Entry entered, enter(below.valid() ? below.get() : directory_.get(), component));
    path += '/' + entered.name;
    below = std::move(entered.fd);
  }
  const int parent = below.valid() ? below.get() : directory_.get();
  SBX_ASSIGN(const Entry file, create(parent, last));
  path += '/' + file.name;
  if (const auto written = sbx::sys::write_all(file.fd.get(), content); !written) {
    (void)::unlinkat(parent, file.name.c_str(), 0);  // half of it is of no use to anybody
    return unusable(path, written.error().sys_errno);
  }
  return path;
}

}  // namespace agentd::cli
