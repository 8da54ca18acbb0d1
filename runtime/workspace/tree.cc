#include "runtime/workspace/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/sys.h"

namespace sbx::workspace {
namespace {

constexpr std::uint64_t kResolve =
    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
constexpr std::uint64_t kPage = 4096;
// mm/shmem.c: a target up to this size, with its NUL, lies in the inode; a longer one in a page.
constexpr std::uint64_t kShortLink = 128;

struct CloseDirectory {
  void operator()(DIR* directory) const { (void)::closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

Result<DirectoryStream> open_stream(int root, const std::string& path) {
  SBX_ASSIGN(UniqueFd fd, open_inside(root, path.empty() ? "." : path, O_RDONLY | O_DIRECTORY));
  DirectoryStream stream(::fdopendir(fd.get()));
  if (!stream) return sys_error("fdopendir", path);
  (void)fd.release();  // the stream owns it now
  return stream;
}

Result<std::vector<std::string>> sorted_names(DIR* stream) {
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream);
    if (entry == nullptr) {
      if (errno != 0) return sys_error("readdir");
      break;
    }
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Depth first, with an explicit stack: a tree can be as deep as its longest path allows.
class Walk {
 public:
  Walk(int root, Visitor& visitor) : root_(root), visitor_(visitor) {}

  Result<void> run() {
    SBX_TRY(enter());
    while (!levels_.empty()) {
      Level& level = levels_.back();
      path_.resize(level.path_size);
      if (level.next < level.directories.size()) {
        append(level.directories[level.next++]);
        SBX_TRY(enter());
        continue;
      }
      levels_.pop_back();
      if (!path_.empty()) SBX_TRY(visitor_.leave(path_));
    }
    return {};
  }

 private:
  struct Level {
    std::size_t path_size = 0;
    std::vector<std::string> directories;
    std::size_t next = 0;
  };

  void append(const std::string& name) {
    if (!path_.empty()) path_ += '/';
    path_ += name;
  }

  // The directory at path_.
  Result<void> enter() {
    levels_.push_back({path_.size(), {}, 0});
    auto stream = open_stream(root_, path_);
    if (!stream) return visitor_.unreadable(path_, stream.error().sys_errno);
    auto names = sorted_names(stream->get());
    if (!names) return visitor_.unreadable(path_, names.error().sys_errno);
    for (const std::string& name : *names) {
      path_.resize(levels_.back().path_size);
      append(name);
      SBX_TRY(look_at(::dirfd(stream->get()), name));
    }
    return {};
  }

  Result<void> look_at(int directory, const std::string& name) {
    // Each level stands for a directory on the way, the top among them.
    if (path_.size() > kMaxPathBytes || levels_.size() > kMaxDepth) {
      return visitor_.unreadable(path_, ENAMETOOLONG);
    }
    struct stat info{};
    if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return visitor_.unreadable(path_, errno);
    }
    if (S_ISDIR(info.st_mode)) levels_.back().directories.push_back(name);
    return visitor_.visit({path_, name, directory, info});
  }

  int root_;
  Visitor& visitor_;
  std::string path_;
  std::vector<Level> levels_;
};

class Measurement final : public Visitor {
 public:
  Result<void> visit(const Entry& entry) override {
    ++size.inodes;
    if (S_ISLNK(entry.info.st_mode)) {
      size.bytes += link_bytes(static_cast<std::uint64_t>(entry.info.st_size));
    }
    if (!S_ISREG(entry.info.st_mode)) return {};
    if (entry.info.st_nlink > 1 && !counted_.insert(entry.info.st_ino).second) return {};
    SBX_ASSIGN(const UniqueFd file, open_inside(entry.directory, entry.name, O_RDONLY));
    SBX_ASSIGN(const std::uint64_t bytes,
               data_bytes(file.get(), static_cast<std::uint64_t>(entry.info.st_size)));
    size.bytes += bytes;
    return {};
  }

  plan::WorkspaceSize size;

 private:
  std::set<ino_t> counted_;
};

Result<void> remove_entry(int directory, const std::string& name, int flags) {
  if (::unlinkat(directory, name.c_str(), flags) == 0 || errno == ENOENT) return {};
  return sys_error("unlink", name);
}

// What is gone already was removed by somebody who is at the same work.
class Removal final : public Visitor {
 public:
  explicit Removal(int root) : root_(root) {}
  Result<void> visit(const Entry& entry) override {
    if (S_ISDIR(entry.info.st_mode)) return {};
    return remove_entry(entry.directory, entry.name, 0);
  }
  Result<void> leave(const std::string& path) override {
    const auto place = find_place(root_, path);
    if (!place) return unreadable(path, place.error().sys_errno);
    return remove_entry(place->directory.get(), place->name, AT_REMOVEDIR);
  }
  Result<void> unreadable(const std::string& path, int sys_errno) override {
    return sys_errno == ENOENT ? Result<void>() : Visitor::unreadable(path, sys_errno);
  }

 private:
  int root_;
};

}  // namespace

Result<UniqueFd> open_inside(int directory, const std::string& path, int flags, mode_t mode) {
  // With O_PATH openat2(2) takes no flag that is about reading.
  const int harmless = (flags & O_PATH) != 0 ? 0 : O_NONBLOCK | O_NOCTTY;
  return sys::open_beneath(directory, path, flags | harmless, mode, kResolve);
}

std::string last_component(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

Result<Place> find_place(int root, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash);
  SBX_ASSIGN(UniqueFd fd, open_inside(root, directory, O_PATH | O_DIRECTORY));
  return Place{std::move(fd), last_component(path)};
}

Result<int> Directories::holding(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "." : path.substr(0, slash);
  if (fd_ && directory == path_) return fd_.get();
  SBX_ASSIGN(fd_, open_inside(root_, directory, O_PATH | O_DIRECTORY));
  path_ = std::move(directory);
  return fd_.get();
}

Result<void> Visitor::leave(const std::string& /*path*/) {
  return {};
}

Result<void> Visitor::unreadable(const std::string& path, int sys_errno) {
  errno = sys_errno;
  return sys_error("open", path);
}

Result<void> walk(int root, Visitor& visitor) {
  return Walk(root, visitor).run();
}

Result<Extent> next_data(int fd, std::uint64_t offset, std::uint64_t file_size) {
  if (offset >= file_size) return Extent{};
  const off_t start = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  if (start < 0 && errno == ENXIO) return Extent{};  // nothing but a hole up to the end
  if (start < 0) return sys_error("lseek(SEEK_DATA)");
  const off_t end = ::lseek(fd, start, SEEK_HOLE);
  if (end < 0) return sys_error("lseek(SEEK_HOLE)");
  const auto from = static_cast<std::uint64_t>(start);
  const auto to = std::min(static_cast<std::uint64_t>(end), file_size);
  return Extent{from, to > from ? to - from : 0};
}

Result<std::uint64_t> data_bytes(int fd, std::uint64_t file_size) {
  std::uint64_t pages = 0;
  for (std::uint64_t offset = 0;;) {
    SBX_ASSIGN(const Extent extent, next_data(fd, offset, file_size));
    if (extent.size == 0) return pages * kPage;
    offset = extent.offset + extent.size;
    pages += (offset + kPage - 1) / kPage - extent.offset / kPage;
  }
}

std::uint64_t link_bytes(std::uint64_t target_size) {
  return target_size + 1 <= kShortLink ? 0 : kPage;
}

Result<plan::WorkspaceSize> measure(int root) {
  Measurement measurement;
  SBX_TRY(walk(root, measurement));
  return measurement.size;
}

Result<void> remove_tree(int parent, const std::string& name) {
  {
    const auto root = open_inside(parent, name, O_PATH | O_DIRECTORY);
    if (!root && root.error().sys_errno == ENOENT) return {};
    if (!root) return root.error();
    Removal removal(root->get());
    SBX_TRY(walk(root->get(), removal));
  }
  return remove_entry(parent, name, AT_REMOVEDIR);
}

}  // namespace sbx::workspace
