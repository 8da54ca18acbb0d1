// Session: one workspace that lives on, as the daemon knows it, and who may do what with it when.
// Stage: daemon, the loop's thread. Nothing here touches the disk.
//
// A run has the tree for itself, and so, for a moment, has a call that changes it; calls that read
// it share it. While a run is on, files calls are refused. An upload in the making keeps runs away
// too: what it makes would be lost in the generation that a run leaves. Each use is a Hold.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "http/async/cancellation.h"
#include "http/async/event.h"
#include "http/async/loop.h"
#include "http/async/task.h"
#include "runtime/base/unique_fd.h"
#include "runtime/daemon/json_fields.h"
#include "runtime/daemon/session_record.h"
#include "runtime/daemon/session_store.h"
#include "runtime/plan/request.h"
#include "runtime/sandbox.h"
#include "runtime/workspace/edit.h"

namespace sbx::daemon {

class Hold;
class Session;
// Owners: the registry while the session is there, and each call that uses it.
using SessionPtr = std::shared_ptr<Session>;
using SessionClock = std::function<SessionTime()>;

class Session {
 public:
  // Requests that wait for one session's running run, and uploads under way in it.
  static constexpr std::size_t kMaxWaiting = 16;
  static constexpr std::uint32_t kMaxUploads = 4;

  // `now` outlives it.
  Session(async::Loop& loop, const SessionClock& now, StoredSession stored, SessionId id);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const SessionRecord& record() const { return record_; }
  [[nodiscard]] std::uint32_t payload_id() const { return id_.index; }
  // See session_directory.h. The second owner is a job of the pool, which may outlive the session.
  [[nodiscard]] const std::shared_ptr<const UniqueFd>& directory() const { return directory_; }
  [[nodiscard]] SessionTime last_used() const { return last_used_; }
  [[nodiscard]] SessionTime idle_end() const { return last_used_ + record_.idle; }
  [[nodiscard]] SessionTime age_end() const { return record_.created + record_.age; }
  [[nodiscard]] bool is_aged() const { return now_() >= age_end(); }

  // None until it is measured; not exact, but never too small, after a change that could not be
  // counted.
  [[nodiscard]] const std::optional<plan::WorkspaceSize>& size() const { return size_; }
  [[nodiscard]] bool size_is_exact() const { return size_ && size_exact_; }
  void set_size(plan::WorkspaceSize size);
  void add_to_size(const workspace::SizeChange& change);
  // Bytes that uploads in the making will add.
  [[nodiscard]] std::uint64_t reserved() const { return reserved_; }

  [[nodiscard]] bool running() const { return running_; }
  [[nodiscard]] bool in_use() const {
    return running_ || files_ > 0 || uploads_ > 0 || !waiting_.empty();
  }

  // From end() on nothing new begins (until revive()). `why`: it has expired; none: it is deleted.
  void end(std::optional<Expiry> why);
  [[nodiscard]] bool ending() const { return ending_; }
  [[nodiscard]] std::optional<Expiry> expiry() const { return expiry_; }
  void revive();
  // Raised with the deletion: a parent of its run's cancellation.
  [[nodiscard]] const async::Cancellation& deleted() const { return *deleted_; }
  // Returns once nobody uses the session any more, or at the deadline.
  [[nodiscard]] async::Task<void> wait_unused(async::Deadline deadline = async::kNoDeadline);

  // True once after each use.
  [[nodiscard]] bool take_used() { return std::exchange(used_, false); }

 private:
  friend class Hold;
  friend class UploadHold;
  friend async::Task<OrProblem<Hold>> hold_for_run(SessionPtr session, bool wait,
                                                   async::Deadline deadline,
                                                   const async::Cancellation* gone);
  friend async::Task<OrProblem<Hold>> hold_for_reading(SessionPtr session);
  friend async::Task<OrProblem<Hold>> hold_for_change(SessionPtr session);

  void release(bool of_run, bool of_change);

  const SessionClock& now_;
  SessionRecord record_;
  std::shared_ptr<const UniqueFd> directory_;
  SessionId id_;
  SessionTime last_used_;
  std::optional<plan::WorkspaceSize> size_;
  bool size_exact_ = false;

  std::unique_ptr<async::Cancellation> deleted_ = std::make_unique<async::Cancellation>();
  async::Event changed_;
  bool ending_ = false;
  std::optional<Expiry> expiry_;
  bool used_ = false;
  bool running_ = false;
  bool changing_ = false;
  std::uint32_t changes_waiting_ = 0;
  std::uint32_t files_ = 0;  // calls that read or change
  std::uint32_t uploads_ = 0;
  std::uint64_t reserved_ = 0;
  std::list<const void*> waiting_;  // for a run, in the order in which they came
};

// One use of a session, ended by the destructor.
class Hold {
 public:
  enum class Kind : std::uint8_t { kRun, kReading, kChange };
  Hold(SessionPtr session, Kind kind) : session_(std::move(session)), kind_(kind) {}
  Hold(Hold&&) noexcept = default;
  Hold& operator=(Hold&&) = delete;
  ~Hold() {
    if (session_) session_->release(kind_ == Kind::kRun, kind_ == Kind::kChange);
  }

 private:
  SessionPtr session_;
  Kind kind_;
};

// Each fails with `session_deleted` when the session ends, `session_busy` when it is in use.
//
// For a run: waits for files calls in any case, and with `wait` for runs and uploads before it, in
// turn: `too_many_requests` when too many do, or the deadline comes first. `gone` ends the wait as
// well.
[[nodiscard]] async::Task<OrProblem<Hold>> hold_for_run(SessionPtr session, bool wait,
                                                        async::Deadline deadline,
                                                        const async::Cancellation* gone);
// Waits for changes, which go first.
[[nodiscard]] async::Task<OrProblem<Hold>> hold_for_reading(SessionPtr session);
// Waits for what reads or changes.
[[nodiscard]] async::Task<OrProblem<Hold>> hold_for_change(SessionPtr session);

// An upload, and the room that is kept for it.
class UploadHold {
 public:
  // `too_many_uploads`, and as above.
  [[nodiscard]] static OrProblem<UploadHold> take(const SessionPtr& session);
  UploadHold(UploadHold&& other) noexcept
      : session_(std::move(other.session_)), reserved_(std::exchange(other.reserved_, 0)) {}
  UploadHold& operator=(UploadHold&&) = delete;
  ~UploadHold();

  // Keeps room for `bytes`, and no longer for what it was before. False: there is not so much.
  // Precondition: the session's size is known.
  [[nodiscard]] bool reserve(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t reserved() const { return reserved_; }

 private:
  explicit UploadHold(SessionPtr session) : session_(std::move(session)) {}
  SessionPtr session_;
  std::uint64_t reserved_ = 0;
};

}  // namespace sbx::daemon
