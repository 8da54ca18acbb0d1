// SessionStore: the directory in which sessions are kept. Stage: daemon. Blocks on disk: called at
// start-up, and then from the work pool; calls for different sessions may run at once.
//
//   sessions/
//     .lock               held by the one daemon that uses the directory
//     <id>/session.json   the record (0600); its time of change is the session's last use
//     <id>/tree/          the workspace as it is now
//     <id>/next-*         a generation in the making, or the old one on its way out
//     <id>/put-*          an upload in the making
//     <id>/gone-*         what was deleted, on its way out
//     expired/<id>        a tombstone
//     .new-* .gone-*      a session in the making, or on its way out
//
// Whatever is made gets its final name by one rename(2) of something complete and durable, so a
// SIGKILL or a power failure at any moment leaves either the old or the new; names with a '-' are
// leftovers of it, which load() finds.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/daemon/session_record.h"

namespace sbx::daemon {

struct StoredSession {
  SessionRecord record;
  SessionTime last_used{};
  UniqueFd directory;  // O_PATH of <id>/; see session_directory.h
};

// Something to be removed, below the store's directory.
struct Leftover {
  std::string session;  // an id, or empty: in the store's own directory
  std::string name;
};

class SessionStore {
 public:
  // kHost when another sbxd has that directory now. For whoever has much to do before open(), which
  // alone is sure.
  [[nodiscard]] static Result<void> refuse_in_use(const std::string& directory);
  // `directory` exists. kHost when it cannot be used, another daemon uses it, or its file system
  // cannot exchange two directories.
  [[nodiscard]] static Result<SessionStore> open(const std::string& directory);

  // A start failed: of a store in which nothing is kept nothing remains. Nobody may use it then.
  void take_back() const;

  // kHost, with the fix, when `directory` is not there any more as open() found it, or nothing can
  // be made in it. Microseconds.
  [[nodiscard]] Result<void> check_there() const;

  // How many sessions there may be in it; none is opened.
  [[nodiscard]] Result<std::uint64_t> count() const;

  struct Loaded {
    std::vector<StoredSession> sessions;
    std::vector<Tombstone> tombstones;
    std::vector<Leftover> leftovers;      // for remove(), later: they are in nobody's way
    std::vector<std::string> complaints;  // what is there and is not ours: left alone, for the log
  };
  // Once, before anything is created. A session that has a tombstone is a leftover.
  [[nodiscard]] Result<Loaded> load() const;

  // Makes an empty session. Fails as check_there() does, and so do set_aside() and bury().
  [[nodiscard]] Result<StoredSession> create(const SessionRecord& record, SessionTime now) const;
  // Replaces the record of a session.
  [[nodiscard]] Result<void> rewrite(int session, const SessionRecord& record) const;
  // Takes a session out of the store; what is returned remains to be removed.
  [[nodiscard]] Result<Leftover> set_aside(const std::string& id) const;
  // Writes a tombstone; from here on the session is gone, also for a later start.
  [[nodiscard]] Result<void> bury(const Tombstone& tombstone) const;
  [[nodiscard]] Result<void> forget(const std::string& tombstone) const;
  [[nodiscard]] Result<void> remove(const Leftover& leftover) const;

 private:
  SessionStore(std::string path, UniqueFd top, UniqueFd lock)
      : path_(std::move(path)), top_(std::move(top)), lock_(std::move(lock)) {}

  void load_sessions(Loaded& loaded) const;
  [[nodiscard]] Result<void> load_tombstones(Loaded& loaded) const;
  [[nodiscard]] Result<StoredSession> load_session(const std::string& id) const;

  std::string path_;
  UniqueFd top_;
  UniqueFd expired_;
  UniqueFd lock_;
};

}  // namespace sbx::daemon
