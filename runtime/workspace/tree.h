// A workspace's tree of files: walked, measured and removed. Stage: workspace.
//
// The same rules for a tree on disk and for the tmpfs that a payload left: names are hostile, so
// everything is opened beneath a descriptor, by openat2 without links of any kind and without
// leaving the file system. Blocks on disk: never called from an event loop.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/collect/names.h"
#include "runtime/plan/request.h"

namespace sbx::workspace {

// The longest path in a workspace, in bytes and in components. The kernel walks a path anew for
// each entry: without the second bound a chain of short names would cost the square of its length.
inline constexpr std::size_t kMaxPathBytes = collect::kMaxPathBytes;
inline constexpr std::size_t kMaxDepth = 256;

// openat2(2) beneath `directory`: no links, no other file system, nothing that blocks or becomes a
// terminal of ours.
[[nodiscard]] Result<UniqueFd> open_inside(int directory, const std::string& path, int flags,
                                           mode_t mode = 0);

// The directory that holds the last component of `path`, and that component.
struct Place {
  UniqueFd directory;  // O_PATH
  std::string name;
};
[[nodiscard]] Result<Place> find_place(int root, const std::string& path);

// The directories of paths that come grouped by directory: the last one is kept open.
class Directories {
 public:
  explicit Directories(int root) : root_(root) {}
  // Of the directory that holds `path`'s last component; borrowed, valid until the next call.
  [[nodiscard]] Result<int> holding(const std::string& path);

 private:
  int root_;
  std::string path_;
  UniqueFd fd_;
};
// The last component of a path.
[[nodiscard]] std::string last_component(std::string_view path);

// An entry met by a walk.
struct Entry {
  const std::string& path;  // below the root
  const std::string& name;  // the last component
  int directory;            // that holds it; borrowed
  const struct stat& info;  // of the entry itself, links not followed
};

class Visitor {
 public:
  virtual ~Visitor() = default;
  // An entry; a directory before what is in it. An error ends the walk with that error.
  [[nodiscard]] virtual Result<void> visit(const Entry& entry) = 0;
  // A directory, after all that is in it.
  [[nodiscard]] virtual Result<void> leave(const std::string& path);
  // An entry that cannot be looked at, or whose path is too long or too deep (ENAMETOOLONG): an
  // error, unless a visitor knows better.
  [[nodiscard]] virtual Result<void> unreadable(const std::string& path, int sys_errno);
};

// Everything below `root`: first what a directory holds, in byte order of the names, then each of
// its directories. Needs one descriptor at a time, and memory for the names on the way.
[[nodiscard]] Result<void> walk(int root, Visitor& visitor);

// A part of a file that is not a hole, in whole pages but for the file's end.
struct Extent {
  std::uint64_t offset = 0, size = 0;
};
// The first data at or after `offset` (lseek(2) SEEK_DATA); size 0: none. Moves the descriptor's
// offset.
[[nodiscard]] Result<Extent> next_data(int fd, std::uint64_t offset, std::uint64_t file_size);
// What the file costs as a tmpfs counts: whole pages, holes are free.
[[nodiscard]] Result<std::uint64_t> data_bytes(int fd, std::uint64_t file_size);
// The same for a symbolic link's target: short ones lie in the inode.
[[nodiscard]] std::uint64_t link_bytes(std::uint64_t target_size);

// What the tree would need as a tmpfs. A file with several names costs its pages once and an inode
// for each name.
[[nodiscard]] Result<plan::WorkspaceSize> measure(int root);

// Removes the directory `name` of `parent` with everything in it; several may do so at once.
[[nodiscard]] Result<void> remove_tree(int parent, const std::string& name);

}  // namespace sbx::workspace
