#include "runtime/cgroup/group_dir.h"

#include <dirent.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include "runtime/base/sys.h"

namespace sbx::cgroup {
namespace {

constexpr std::uint64_t kResolve =
    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
constexpr mode_t kMode = 0755;
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
// cgroup.procs of a group with the largest possible pids limit is the longest file read here.
constexpr std::size_t kMaxFile = 64U << 20;

Error not_cgroupfs(const std::string& path) {
  return host_lacks("fstatfs", 0, path + " is not on the expected cgroup file system",
                    "unmount what covers " + path);
}

struct CloseDir {
  void operator()(DIR* directory) const { (void)::closedir(directory); }
};

}  // namespace

GroupDir::GroupDir(UniqueFd fd, std::string path, long magic)
    : fd_(std::move(fd)), path_(std::move(path)), magic_(magic) {}

Result<GroupDir> GroupDir::open(const std::string& path, long magic) {
  SBX_ASSIGN(UniqueFd fd, sys::open(path, kDirectory));
  if (!sys::has_magic(fd.get(), magic)) return not_cgroupfs(path);
  return GroupDir(std::move(fd), path, magic);
}

Result<GroupDir> GroupDir::open_child(const std::string& name) const {
  SBX_ASSIGN(UniqueFd fd, sys::open_beneath(fd_.get(), name, kDirectory, 0, kResolve));
  const std::string path = path_ + "/" + name;
  if (!sys::has_magic(fd.get(), magic_)) return not_cgroupfs(path);
  return GroupDir(std::move(fd), path, magic_);
}

Result<GroupDir> GroupDir::make_child(const std::string& name) const {
  if (::mkdirat(fd_.get(), name.c_str(), kMode) != 0) {
    if (errno == EAGAIN) {
      return host_lacks("mkdir", EAGAIN, path_ + "/" + name,
                        "raise cgroup.max.descendants or cgroup.max.depth of a group above it");
    }
    return sys_error("mkdir", path_ + "/" + name);
  }
  auto child = open_child(name);
  // The umask may have taken away what the owner needs.
  if (!child && child.error().sys_errno == EACCES &&
      ::fchmodat(fd_.get(), name.c_str(), kMode, 0) == 0) {
    child = open_child(name);
  }
  if (!child) (void)::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR);  // the open's error counts
  return child;
}

Result<std::vector<std::string>> GroupDir::children() const {
  SBX_ASSIGN(UniqueFd copy, sys::open_beneath(fd_.get(), ".", kDirectory, 0, kResolve));
  const std::unique_ptr<DIR, CloseDir> directory(::fdopendir(copy.get()));
  if (!directory) return sys_error("fdopendir", path_);
  (void)copy.release();  // now closedir's
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

bool GroupDir::has(const char* file) const {
  return ::faccessat(fd_.get(), file, F_OK, 0) == 0;
}

Result<UniqueFd> GroupDir::open_file(const char* file, int flags) const {
  auto fd = sys::open_beneath(fd_.get(), file, flags | O_CLOEXEC, 0, kResolve);
  if (!fd) return std::move(fd).error().with_context(path_);
  if (!sys::has_magic(fd->get(), magic_)) return not_cgroupfs(path_ + "/" + file);
  return fd;
}

Result<void> GroupDir::write(const char* file, std::string_view value) const {
  SBX_ASSIGN(const UniqueFd fd, open_file(file, O_WRONLY));
  auto written = sys::write_all(fd.get(), value);
  if (!written) {
    return std::move(written).error().with_context(path_ + "/" + file + " \"" + std::string(value) +
                                                   "\"");
  }
  return {};
}

Result<std::string> GroupDir::read(const char* file) const {
  SBX_ASSIGN(const UniqueFd fd, open_file(file, O_RDONLY));
  auto text = sys::read_all(fd.get(), kMaxFile);
  if (!text) return std::move(text).error().with_context(path_ + "/" + file);
  return text;
}

Result<std::uint64_t> GroupDir::read_number(const char* file) const {
  SBX_ASSIGN(const std::string text, read(file));
  const auto number = parse_number(text);
  if (!number) return invalid(path_ + "/" + file + " holds no number: " + text);
  return *number;
}

Result<std::uint64_t> GroupDir::read_key(const char* file, std::string_view key) const {
  SBX_ASSIGN(const std::string text, read(file));
  return find_key(text, key).value_or(0);
}

Result<void> GroupDir::delegate_to(uid_t uid, gid_t gid) const {
  if (::fchown(fd_.get(), uid, gid) != 0) return sys_error("fchown", path_);
  for (const char* file : {"cgroup.procs", "cgroup.subtree_control", "cgroup.threads"}) {
    if (::fchownat(fd_.get(), file, uid, gid, AT_SYMLINK_NOFOLLOW) != 0) {
      return sys_error("fchownat", path_ + "/" + file);
    }
  }
  return {};
}

Result<void> GroupDir::remove_child(const std::string& name, Deadline deadline) const {
  using std::chrono::milliseconds;
  // Exiting tasks leave a group a moment after they can be waited for, and v1 has no event for it.
  for (milliseconds pause(1);; pause = std::min(pause * 2, milliseconds(16))) {
    if (::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    if (errno != EBUSY) return sys_error("rmdir", path_ + "/" + name);
    // Busy by processes or by subgroups; the latter are only there when something went wrong.
    if (const auto child = open_child(name)) {
      const auto below = child->children();
      if (below && !below->empty()) {
        for (const std::string& grandchild : *below) {
          SBX_TRY(child->remove_child(grandchild, deadline));
        }
        continue;
      }
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      errno = EBUSY;
      return sys_error("rmdir", path_ + "/" + name);
    }
    (void)::poll(nullptr, 0, static_cast<int>(pause.count()));
  }
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest.find_first_not_of(" \n") != std::string_view::npos) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> find_key(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return parse_number(line.substr(key.size() + 1));
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

}  // namespace sbx::cgroup
