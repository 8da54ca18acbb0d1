#include "agentd/cli/save.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>

#include "runtime/base/escape.h"
#include "runtime/base/sys.h"
#include "runtime/base/utf8.h"

namespace agentd::cli {
namespace {

constexpr std::size_t kMaxName = 200;
constexpr int kMaxTries = 1000;

// "plot.png" as "plot-2.png".
std::string numbered(const std::string& name, int number) {
  if (number == 1) return name;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return fmt::format("{}-{}", name, number);
  return fmt::format("{}-{}{}", name.substr(0, dot), number, name.substr(dot));
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

sbx::Result<std::string> save_file(const std::string& directory, std::string_view name,
                                   std::string_view content) {
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    return sbx::host_lacks("mkdir", errno, directory, "name another directory with --save");
  }
  const std::string safe = safe_name(name);
  for (int number = 1; number <= kMaxTries; ++number) {
    std::string path = directory + "/" + numbered(safe, number);
    auto file = sbx::sys::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (!file) {
      if (file.error().sys_errno == EEXIST) continue;
      return sbx::host_lacks("open", file.error().sys_errno, path,
                             "name another directory with --save");
    }
    SBX_TRY(sbx::sys::write_all(file->get(), content));
    return path;
  }
  return sbx::invalid(directory + " has too many files called " + safe);
}

}  // namespace agentd::cli
