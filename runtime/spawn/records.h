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
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::spawn {

// The directory for records and id locks. Created 0700 when missing, but /run/sbx 0755:
// the socket of the service lies in it.
class RuntimeDirectory {
 public:
  // `configured` or the default: /run/sbx for root, $XDG_RUNTIME_DIR/sbx, /tmp/sbx-<uid>. Without
  // slashes at its end.
  [[nodiscard]] static std::string path_for(const std::string& configured);
  // At path_for(). kHost, with the fix, when it is no directory of the caller's.
  [[nodiscard]] static Result<RuntimeDirectory> open(const std::string& configured);
  // Whether open() and then a run's record would do. Where its directories are there, with such a
  // record, which is gone again afterwards; else the place of those that are not must take a file.
  [[nodiscard]] static Result<void> check(const std::string& configured);

  // kHost, with the fix, where it was removed since it was opened: no record can be made then.
  [[nodiscard]] Result<void> check_there() const;

  [[nodiscard]] int runs_fd() const { return runs_.get(); }
  [[nodiscard]] int ids_fd() const { return ids_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  // The name of a record's groups: carries which runtime directory the record is in, because one
  // cgroup subtree can be shared by owners with different ones.
  [[nodiscard]] std::string group_name(std::string_view record) const;
  // True when a group is named after a record of this directory that is dead.
  [[nodiscard]] bool is_dead_group(std::string_view group) const;

  // True when `record` has no file, or one that nobody holds locked. What is no regular file of the
  // caller's is no record: never dead, never waited for, and left alone.
  [[nodiscard]] bool is_dead(std::string_view record) const;
  // Unlinks the files of dead records; returns their names. Their groups must be gone by then.
  std::vector<std::string> remove_dead_records() const;
  // This process as records name it: pid and start time (clock ticks since boot, proc(5)), which
  // together no later process has.
  [[nodiscard]] const std::string& owner() const { return owner_; }

 private:
  RuntimeDirectory(std::string path, UniqueFd runs, UniqueFd ids);
  std::string path_;
  std::string tag_;    // device and inode of runs/, in hexadecimal, and a '-'
  std::string owner_;  // JSON members
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

// The lowest free index in [first, count/2), else in [1, first): the lower half serves runs, the
// upper half sessions. With a count of 1 there is nothing to lease: index 0 without a lock.
[[nodiscard]] Result<IdLease> lease_id(const RuntimeDirectory& directory, std::uint32_t count,
                                       std::uint32_t first = 1);

// The ids of one process: a lease that was given back is kept, locked, for its next run. So the
// cost of taking one does not grow with the runs under way.
class IdPool {
 public:
  // `directory` outlives the pool.
  explicit IdPool(const RuntimeDirectory& directory) : directory_(&directory) {}
  // As lease_id(); `count` is the same in all calls, or 1.
  [[nodiscard]] Result<IdLease> take(std::uint32_t count);
  // Precondition: no process has the id any more.
  void give(IdLease lease);

 private:
  const RuntimeDirectory* directory_;
  std::uint32_t next_ = 1;  // where to look first
  std::vector<IdLease> idle_;
};

// For a session: `wanted` when it is free, else the lowest free index of [count/2, count). It keeps
// the index for life. With a count of 1 index 0 without a lock; kHost when the range is too small
// for sessions, or when all are taken.
[[nodiscard]] Result<IdLease> lease_session_id(const RuntimeDirectory& directory,
                                               std::uint32_t count, std::uint32_t wanted = 0);

// 16 hexadecimal digits from getrandom(2). Throws std::system_error where a filter forbids that.
[[nodiscard]] std::string new_run_id();

}  // namespace sbx::spawn
