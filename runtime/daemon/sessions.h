// Sessions: the registry of all sessions, and their life from creation to expiry. Stage: daemon,
// the loop's thread; what blocks is done on the work pool.
//
// A session belongs to the uid that made it; for others, root excepted, it does not exist. It
// expires when it was not used for its idle time, or at its greatest age; a use under way is let
// finish. What has expired answers `session_expired` for kTombstoneTime, or until there are too
// many.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/async/task_group.h"
#include "http/async/work_pool.h"
#include "http/message.h"
#include "runtime/daemon/session.h"
#include "runtime/daemon/session_store.h"

namespace sbx::daemon {

inline constexpr std::chrono::hours kTombstoneTime{7 * 24};
inline constexpr std::size_t kMaxTombstones = 4096;
inline constexpr std::size_t kMaxTombstonesPerOwner = 256;

struct SessionBounds {
  std::uint32_t max = 1000;
  std::uint32_t max_per_peer = 100;
  // The ceilings of today: those that were made under higher ones are bound too.
  std::uint64_t work = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t work_inodes = std::numeric_limits<std::uint64_t>::max();
};

// What a client asked for, within the ceilings.
struct SessionWish {
  std::uint64_t work = 0, work_inodes = 0;
  std::chrono::seconds idle{}, age{};
};

class Sessions {
 public:
  // Leases an id of the upper half of the range, `wanted` when it is free. From any thread.
  using LeaseId = std::function<Result<SessionId>(std::uint32_t wanted)>;

  // `pool` and `transfers` can be the same where there are few runs.
  Sessions(async::Loop& loop, async::WorkPool& pool, async::WorkPool& transfers, SessionStore store,
           SessionBounds bounds, LeaseId lease, SessionClock now);
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  // Takes over what the store holds; blocks. Leftovers are removed later, on the pool.
  [[nodiscard]] Result<void> load();

  // `session_not_found`, `session_expired`.
  [[nodiscard]] OrProblem<SessionPtr> find(const http::Peer& peer, const std::string& id) const;
  // Those that the peer may see, by id.
  [[nodiscard]] std::vector<SessionPtr> all_of(const http::Peer& peer) const;
  [[nodiscard]] std::size_t count() const { return sessions_.size(); }

  // Why none can be made or deleted now, or nothing.
  [[nodiscard]] std::optional<http::Problem> problem() const;

  // `too_many_sessions`, and what the store says.
  [[nodiscard]] async::Task<OrProblem<SessionPtr>> create(http::Peer peer, SessionWish wish);
  // Cancels its run, waits 5 s at most for those who use it, and removes it; what they use stays
  // until they leave. True when a run was cancelled.
  [[nodiscard]] async::Task<OrProblem<bool>> remove(SessionPtr session);
  // Measures the session unless its size is known exactly. Precondition: it is held.
  [[nodiscard]] async::Task<std::optional<http::Problem>> measure(SessionPtr session);

  // Ends what has expired by now, unless there is a problem(), and notes on disk which sessions
  // were used.
  [[nodiscard]] async::Task<void> tend();
  // tend(), for ever.
  [[nodiscard]] async::Task<void> tend_always();

  // Removes something beside a session's tree, in the background.
  void remove_later(const Session& session, std::string name);
  void remove_later(Leftover leftover);
  async::Task<void> remove_unused(SessionPtr session, Leftover leftover);

  // For short work on files, and for whole trees on their way into and out of runs: a transfer
  // takes as long as its run lets it, and must not keep others waiting.
  [[nodiscard]] async::WorkPool& pool() { return pool_; }
  [[nodiscard]] async::WorkPool& transfers() { return transfers_; }
  [[nodiscard]] async::TaskGroup& tasks() { return tasks_; }
  [[nodiscard]] async::Loop& loop() { return loop_; }
  [[nodiscard]] const SessionBounds& bounds() const { return bounds_; }
  struct Counters {
    std::uint64_t created = 0, deleted = 0, expired_idle = 0, expired_age = 0;
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  struct Made {
    StoredSession stored;
    SessionId id;
  };
  [[nodiscard]] Result<void> adopt(StoredSession stored);
  [[nodiscard]] std::optional<http::Problem> refuse_more(const std::optional<uid_t>& owner) const;
  [[nodiscard]] std::optional<Expiry> expiry_of(const Session& session) const;
  // Whether the store can be changed; the log says when that changes.
  [[nodiscard]] bool look_at_store();
  [[nodiscard]] async::Task<void> expire(SessionPtr session, Expiry why);
  void remember(Tombstone tombstone);
  void forget(const std::string& id);
  void prune(const std::optional<uid_t>& owner);
  async::Task<void> revive_unused(SessionPtr session);
  // `what`: for the log, when it fails.
  async::Task<void> run_job(std::string what, std::function<Result<void>()> job);

  async::Loop& loop_;
  async::WorkPool& pool_;
  async::WorkPool& transfers_;
  std::shared_ptr<const SessionStore> store_;  // the second owner is a job of the pool
  SessionBounds bounds_;
  LeaseId lease_;
  SessionClock now_;
  std::map<std::string, SessionPtr> sessions_;
  std::map<std::string, Tombstone> tombstones_;
  std::vector<std::optional<uid_t>> making_;  // owners of those that create() is making
  std::uint32_t last_index_ = 0;
  bool is_there_ = true;  // what the log has said of the store
  Counters counters_;
  async::TaskGroup tasks_;  // after what its tasks use
};

}  // namespace sbx::daemon
