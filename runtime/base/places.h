// Where a daemon has its files, as the environment says, and the directories for them. Stage: base.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx {

inline constexpr const char* kMakeRoom = "make room on the file system that it is on";

// `error` as the host's lack (kHost), with the fix, where the disk that it is about is full, over
// quota, read-only or broken, or where our own limit on a file's size is in the way; any other as
// it is. For writes of our own alone: to a run, its own file systems may be full.
[[nodiscard]] Error name_disk_failure(Error error);

// An absolute path in the environment, the first where it is a list (systemd.exec(5)); else empty.
[[nodiscard]] std::string path_from_environment(const char* name);

// The same path. SECURITY: with a slash at its end, the kernel follows a link that O_NOFOLLOW is to
// refuse.
[[nodiscard]] std::string without_end_slash(std::string path);

// Directories that a start has made. A start that fails takes them back: those that are still
// empty, the last first. Owner: the start, until keep().
class FreshDirectories {
 public:
  FreshDirectories() = default;
  FreshDirectories(const FreshDirectories&) = delete;
  FreshDirectories& operator=(const FreshDirectories&) = delete;
  ~FreshDirectories();
  void add(std::string path) { paths_.push_back(std::move(path)); }
  [[nodiscard]] bool hold(const std::string& path) const;
  void keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

// The directory, and those above it that are missing, for all to enter (0755). What is there stays
// as it is; what was made is added to `fresh`. kHost, with the fix, where one cannot be made.
[[nodiscard]] Result<void> make_with_parents(const std::string& path, mode_t mode,
                                             FreshDirectories* fresh = nullptr);

// Whose a private directory is, and what an operator can do where one cannot be taken.
struct PrivateOwner {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string way_out{};  // "name another with --state-dir"
  // Where others may read what is there, but not change it: true takes it. Without it: refused.
  std::function<bool(const UniqueFd&)> may_be_read{};
};

// A directory for its owner alone, opened without following a link. One that is missing is made,
// 0700 and his, and added to `fresh`. SECURITY: one that is there is looked at and never changed,
// since it may be the system's: kHost, with the fix, where it is not his or others may get at it.
[[nodiscard]] Result<UniqueFd> private_directory(const std::string& path, const PrivateOwner& owner,
                                                 FreshDirectories& fresh);

}  // namespace sbx
