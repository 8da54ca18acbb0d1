// Where a daemon has its files, as the environment says, and the directories for them. Stage: base.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace sbx {

inline constexpr const char* kMakeRoom = "make room on the file system that it is on";

// `error` as the host's lack (kHost), with the fix, where the disk that it is about is full, over
// quota, read-only or broken; any other as it is. For writes of our own alone: to a run, its own
// file systems may be full.
[[nodiscard]] Error name_disk_failure(Error error);

// An absolute path in the environment, the first where it is a list (systemd.exec(5)); else empty.
[[nodiscard]] std::string path_from_environment(const char* name);

// Directories that a start has made. A start that fails takes them back: those that are still
// empty, the last first. Owner: the start, until keep().
class FreshDirectories {
 public:
  FreshDirectories() = default;
  FreshDirectories(const FreshDirectories&) = delete;
  FreshDirectories& operator=(const FreshDirectories&) = delete;
  ~FreshDirectories();
  void add(std::string path) { paths_.push_back(std::move(path)); }
  void keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

// The directory, and those above it that are missing, for all to enter (0755). What is there stays
// as it is; what was made is added to `fresh`. kHost, with the fix, where one cannot be made.
[[nodiscard]] Result<void> make_with_parents(const std::string& path, mode_t mode,
                                             FreshDirectories* fresh = nullptr);

}  // namespace sbx
