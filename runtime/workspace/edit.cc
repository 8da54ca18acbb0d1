#include "runtime/workspace/edit.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "runtime/base/sys.h"
#include "runtime/collect/names.h"
#include "runtime/workspace/tree.h"

namespace sbx::workspace {
namespace {

constexpr mode_t kDirectoryMode = 0755;

Error failure(int sys_errno, const char* operation, std::string detail = {}) {
  errno = sys_errno;
  return sys_error(operation, std::move(detail));
}

// What stands at a name; no entry: nlink 0.
Result<struct stat> look_at(int directory, const std::string& name) {
  struct stat info{};
  if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return info;
  info = {};
  if (errno == ENOENT) return info;
  return sys_error("fstatat");
}

// What an entry that is no directory costs, and whether its going frees that.
Result<SizeChange> cost_of(int directory, const std::string& name, const struct stat& info) {
  if (S_ISLNK(info.st_mode)) {
    const auto size = static_cast<std::uint64_t>(info.st_size);
    return SizeChange{static_cast<std::int64_t>(link_bytes(size)), 1};
  }
  if (info.st_nlink > 1) return SizeChange{.bytes = 0, .inodes = 1, .exact = false};
  SBX_ASSIGN(const UniqueFd file, open_inside(directory, name, O_RDONLY));
  SBX_ASSIGN(const std::uint64_t bytes,
             data_bytes(file.get(), static_cast<std::uint64_t>(info.st_size)));
  return SizeChange{static_cast<std::int64_t>(bytes), 1};
}

Result<void> sync_directory(int directory) {
  SBX_ASSIGN(const UniqueFd fd, open_inside(directory, ".", O_RDONLY | O_DIRECTORY));
  if (::fsync(fd.get()) != 0) return sys_error("fsync");
  return {};
}

// The directories on the way to an entry: those that are there, and those to be made.
class Way {
 public:
  static Result<Way> find(int tree, std::string_view path) {
    Way way;
    SBX_ASSIGN(way.last_, open_inside(tree, ".", O_PATH | O_DIRECTORY));
    for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
         slash = path.find('/')) {
      const std::string name(path.substr(0, slash));
      path.remove_prefix(slash + 1);
      if (!way.missing_.empty()) {
        way.missing_.push_back(name);
        continue;
      }
      auto next = open_inside(way.last_.get(), name, O_PATH | O_DIRECTORY);
      if (next) {
        way.last_ = *std::move(next);
      } else if (next.error().sys_errno == ENOENT) {
        way.missing_.push_back(name);
      } else {
        return next.error();
      }
    }
    way.name_ = path;
    return way;
  }

  [[nodiscard]] std::size_t missing() const { return missing_.size(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  // The last one that is there.
  [[nodiscard]] int directory() const { return last_.get(); }

  // Makes what is missing, and syncs every directory that got an entry. Undone by unmake().
  Result<void> make() {
    for (const std::string& name : missing_) {
      if (::mkdirat(directory(), name.c_str(), kDirectoryMode) != 0) return sys_error("mkdir");
      SBX_ASSIGN(UniqueFd next, open_inside(directory(), name, O_PATH | O_DIRECTORY));
      made_.push_back(std::exchange(last_, std::move(next)));
    }
    return {};
  }
  Result<void> sync() {
    for (const UniqueFd& parent : made_) SBX_TRY(sync_directory(parent.get()));
    return sync_directory(directory());
  }
  void unmake() {
    for (std::size_t i = made_.size(); i-- > 0;) {
      // Empty, as nobody else changes the tree; what cannot be removed is an empty directory.
      (void)::unlinkat(made_[i].get(), missing_[i].c_str(), AT_REMOVEDIR);
    }
  }

 private:
  UniqueFd last_;
  std::string name_;
  std::vector<std::string> missing_;
  std::vector<UniqueFd> made_;  // the parents of missing_, as far as they were made
};

Result<void> move_in(Way& way, int staging, const std::string& staged) {
  SBX_TRY(way.make());
  if (::renameat(staging, staged.c_str(), way.directory(), way.name().c_str()) != 0) {
    return sys_error("rename");
  }
  return {};
}

}  // namespace

bool is_valid_path(std::string_view path) {
  if (!collect::is_plain_relative_path(path)) return false;
  for (std::size_t depth = 1; !path.empty(); ++depth) {
    const std::size_t size = std::min(path.find('/'), path.size());
    if (size > kMaxNameBytes || depth > kMaxDepth) return false;
    path.remove_prefix(std::min(size + 1, path.size()));
  }
  return true;
}

Result<OpenedFile> open_file(int tree, const std::string& path) {
  OpenedFile file;
  SBX_ASSIGN(file.fd, open_inside(tree, path, O_RDONLY));
  if (::fstat(file.fd.get(), &file.info) != 0) return sys_error("fstat");
  if (S_ISREG(file.info.st_mode)) return file;
  return failure(S_ISDIR(file.info.st_mode) ? EISDIR : EINVAL, "open");
}

Result<std::uint64_t> replaceable_bytes(int tree, const std::string& path) {
  SBX_ASSIGN(const Way way, Way::find(tree, path));
  if (way.missing() > 0) return std::uint64_t{0};
  SBX_ASSIGN(const struct stat info, look_at(way.directory(), way.name()));
  if (info.st_nlink == 0 || S_ISDIR(info.st_mode)) return std::uint64_t{0};
  SBX_ASSIGN(const SizeChange cost, cost_of(way.directory(), way.name(), info));
  return static_cast<std::uint64_t>(cost.bytes);
}

Result<SizeChange> put_file(int tree, const std::string& path, int staging,
                            const std::string& staged, std::uint64_t room_bytes,
                            std::uint64_t room_inodes) {
  SBX_ASSIGN(const struct stat info, look_at(staging, staged));
  SBX_ASSIGN(SizeChange change, cost_of(staging, staged, info));
  SBX_ASSIGN(Way way, Way::find(tree, path));
  change.inodes += static_cast<std::int64_t>(way.missing());
  struct stat there{};
  if (way.missing() == 0) {
    SBX_ASSIGN(there, look_at(way.directory(), way.name()));
  }
  if (there.st_nlink > 0) {
    if (S_ISDIR(there.st_mode)) return failure(EISDIR, "rename");
    SBX_ASSIGN(const SizeChange freed, cost_of(way.directory(), way.name(), there));
    change.bytes -= freed.bytes;
    change.inodes -= freed.inodes;
    change.exact = freed.exact;
    change.replaced = true;
  }
  if (change.bytes > static_cast<std::int64_t>(room_bytes)) {
    return failure(EDQUOT, kByteQuota, std::to_string(change.bytes));
  }
  if (change.inodes > static_cast<std::int64_t>(room_inodes)) {
    return failure(EDQUOT, kInodeQuota, std::to_string(change.inodes));
  }
  if (auto moved = move_in(way, staging, staged); !moved) {
    Error error = std::move(moved).error();
    way.unmake();
    return error;
  }
  SBX_TRY(way.sync());
  return change;
}

Result<SizeChange> take_out(int tree, const std::string& path, int trash, const std::string& name) {
  SBX_ASSIGN(const Place place, find_place(tree, path));
  SBX_ASSIGN(const struct stat info, look_at(place.directory.get(), place.name));
  if (info.st_nlink == 0) return failure(ENOENT, "rename");
  SizeChange cost{.exact = false};
  if (!S_ISDIR(info.st_mode)) {
    SBX_ASSIGN(cost, cost_of(place.directory.get(), place.name, info));
  }
  if (::renameat(place.directory.get(), place.name.c_str(), trash, name.c_str()) != 0) {
    return sys_error("rename");
  }
  SBX_TRY(sync_directory(place.directory.get()));
  return SizeChange{-cost.bytes, -cost.inodes, cost.exact};
}

}  // namespace sbx::workspace
