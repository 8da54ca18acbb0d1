// One entry of a workspace's tree, opened, put in place or taken out. Stage: workspace.
//
// What clients of a session do to its files while no run is on. Paths are theirs: judged by
// is_valid_path() first, resolved as tree.h says. Failures that are the caller's to name carry
// their errno: ENOENT, ENOTDIR and ELOOP (something on the way is a file or a link), EISDIR,
// ENAMETOOLONG, and EDQUOT of the operations below; ENOSPC, EIO and others are the disk's. Blocks
// on disk. One tree is changed by one thread at a time.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::workspace {

inline constexpr std::size_t kMaxNameBytes = 255;  // NAME_MAX

// Relative, of up to kMaxDepth components that are not "", "." or "..", without NUL, none and the
// whole not too long.
[[nodiscard]] bool is_valid_path(std::string_view path);

// A regular file, for reading. Its content stays as it is, whatever happens to the name: files of a
// tree are replaced, never written.
struct OpenedFile {
  UniqueFd fd;
  struct stat info{};
};
[[nodiscard]] Result<OpenedFile> open_file(int tree, const std::string& path);

// How the tree's size changed. Not exact where a file has further names: then it must be measured.
struct SizeChange {
  std::int64_t bytes = 0;
  std::int64_t inodes = 0;
  bool exact = true;
  bool replaced = false;  // put_file: something was there before
};

// What put_file() of that path would free: the file of that name, in whole pages.
[[nodiscard]] Result<std::uint64_t> replaceable_bytes(int tree, const std::string& path);

// Moves the durable file `staged` of the directory `staging` (same file system) to `path`, making
// directories on the way, and makes that durable. A file or link of that name is replaced, at once
// and whole. EDQUOT, operation kByteQuota or kInodeQuota, when it needs more than `room_bytes`,
// `room_inodes` beyond what it frees (`detail` is how many); then, as after any failure, the tree
// is as it was.
inline constexpr const char* kByteQuota = "quota of bytes";
inline constexpr const char* kInodeQuota = "quota of inodes";
[[nodiscard]] Result<SizeChange> put_file(int tree, const std::string& path, int staging,
                                          const std::string& staged, std::uint64_t room_bytes,
                                          std::uint64_t room_inodes);

// Moves the entry at `path` to the directory `trash` as `name`, a directory with all that is in it,
// and makes that durable.
[[nodiscard]] Result<SizeChange> take_out(int tree, const std::string& path, int trash,
                                          const std::string& name);

}  // namespace sbx::workspace
