// GroupDir: one control group's directory, and the only way this stage touches cgroupfs.
//
// Runs in the supervisor. Owns the directory's descriptor, not the group: dropping a GroupDir
// removes nothing. Everything is relative to that descriptor, so a run costs no path walks.
//
// SECURITY: a write that was meant for a cgroup file must never land in a file that only looks like
// one. Every descriptor's file system is compared with the magic the hierarchy must have, names are
// resolved beneath the directory without links or mount crossings, and nothing is ever created but
// a directory (cgroupfs fills it itself). If that failed, a tmpfs over /sys/fs/cgroup would turn
// all limits into plain files.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::cgroup {

using Deadline = std::chrono::steady_clock::time_point;

class GroupDir {
 public:
  // `magic` is CGROUP_SUPER_MAGIC or CGROUP2_SUPER_MAGIC; kHost when `path` lies elsewhere.
  [[nodiscard]] static Result<GroupDir> open(const std::string& path, long magic);

  GroupDir() = default;
  [[nodiscard]] bool valid() const { return fd_.valid(); }
  [[nodiscard]] int fd() const { return fd_.get(); }               // borrowed
  [[nodiscard]] const std::string& path() const { return path_; }  // for messages only

  // `name` is one component. make_child fails with EEXIST when a group of that name was left
  // behind.
  [[nodiscard]] Result<GroupDir> open_child(const std::string& name) const;
  [[nodiscard]] Result<GroupDir> make_child(const std::string& name) const;
  // Names of the direct subgroups.
  [[nodiscard]] Result<std::vector<std::string>> children() const;

  [[nodiscard]] bool has(const char* file) const;
  [[nodiscard]] Result<UniqueFd> open_file(const char* file, int flags) const;
  [[nodiscard]] Result<void> write(const char* file, std::string_view value) const;
  [[nodiscard]] Result<std::string> read(const char* file) const;
  // A file that holds one number.
  [[nodiscard]] Result<std::uint64_t> read_number(const char* file) const;
  // The number after `key` in a "key number" file; 0 when the kernel has no such key.
  [[nodiscard]] Result<std::uint64_t> read_key(const char* file, std::string_view key) const;

  // Delegates the group: directory, cgroup.procs, cgroup.subtree_control and cgroup.threads change
  // owner, the limits do not (cgroups(7), "Cgroups v2 delegation").
  [[nodiscard]] Result<void> delegate_to(uid_t uid, gid_t gid) const;

  // rmdir of `name` and of whatever groups lie below it, retried while the kernel says EBUSY.
  // Blocking until `deadline`. A missing group is success.
  [[nodiscard]] Result<void> remove_child(const std::string& name, Deadline deadline) const;

 private:
  GroupDir(UniqueFd fd, std::string path, long magic);

  UniqueFd fd_;
  std::string path_;
  long magic_ = 0;
};

// Pure. The number after `key` in lines "key number"; nullopt when there is no such line.
[[nodiscard]] std::optional<std::uint64_t> find_key(std::string_view text, std::string_view key);
// Pure. A decimal number with optional white space after it; nullopt for anything else.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text);

// Marks an error as this stage's.
template <typename T>
[[nodiscard]] Result<T> in_stage(Result<T> result) {
  if (!result) result.error().stage = "cgroup";
  return result;
}

}  // namespace sbx::cgroup
