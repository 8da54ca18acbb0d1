// Records of live runs, and the ids they hold. Stage: spawn; runs in the supervisor.
//
// Everything a run makes that could outlive it carries its record's name. A record is a file that
// its owner keeps locked (flock) for life, so that any later process can tell a dead owner's
// leftovers without trusting a pid; it appears already locked (O_TMPFILE, then linkat).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::spawn {

// The directory for records and id locks. Created 0700 when missing.
class RuntimeDirectory {
 public:
  // `configured` or the default: /run/sbx for root, $XDG_RUNTIME_DIR/sbx,
  // /tmp/sbx-<uid>. kHost when it is no directory of the caller's.
  [[nodiscard]] static Result<RuntimeDirectory> open(const std::string& configured);

  [[nodiscard]] int runs_fd() const { return runs_.get(); }
  [[nodiscard]] int ids_fd() const { return ids_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  // The name of a record's groups: carries which runtime directory the record is in, because one
  // cgroup subtree can be shared by owners with different ones.
  [[nodiscard]] std::string group_name(std::string_view record) const;
  // True when a group is named after a record of this directory that is dead.
  [[nodiscard]] bool is_dead_group(std::string_view group) const;

  // True when `record` has no file, or one that nobody holds locked.
  [[nodiscard]] bool is_dead(std::string_view record) const;
  // Unlinks the files of dead records; returns how many. Their groups must be gone by then.
  int remove_dead_records() const;

 private:
  RuntimeDirectory(std::string path, UniqueFd runs, UniqueFd ids);
  std::string path_;
  std::string tag_;  // device and inode of runs/, in hexadecimal, and a '-'
  UniqueFd runs_;
  UniqueFd ids_;
};

// A live record. The destructor unlinks it: after everything that carries its name is gone.
class Record {
 public:
  [[nodiscard]] static Result<Record> create(const RuntimeDirectory& directory,
                                             const std::string& id);
  Record(Record&& other) noexcept = default;
  Record& operator=(Record&& other) noexcept = default;
  ~Record();
  [[nodiscard]] const std::string& id() const { return id_; }
  // Leaves the file behind, unlocked, for a later sweep: something of the run could not be removed.
  void abandon() { runs_ = -1; }

 private:
  Record(std::string id, int runs, UniqueFd fd)
      : id_(std::move(id)), runs_(runs), fd_(std::move(fd)) {}
  std::string id_;
  int runs_ = -1;  // borrowed from the RuntimeDirectory
  UniqueFd fd_;
};

// An index into the id range, held by a lock on ids/<index>.
struct IdLease {
  std::uint32_t index = 0;
  UniqueFd lock;
};

// The lowest free index in [1, count/2): the lower half serves runs, the upper half sessions. With
// a count of 1 there is nothing to lease: index 0 without a lock.
[[nodiscard]] Result<IdLease> lease_id(const RuntimeDirectory& directory, std::uint32_t count);

// 16 hexadecimal digits from getrandom(2).
[[nodiscard]] std::string new_run_id();

}  // namespace sbx::spawn
