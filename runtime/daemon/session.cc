#include "runtime/daemon/session.h"

#include <algorithm>

#include "runtime/daemon/session_problems.h"

namespace sbx::daemon {

using async::Task;
using http::Problem;

namespace {

// A place in the queue for the next run, left in any case.
class Turn {
 public:
  Turn(std::list<const void*>& queue, async::Event& changed) : queue_(queue), changed_(changed) {
    queue_.push_back(this);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    queue_.remove(this);
    changed_.notify_all();
  }
  [[nodiscard]] bool is_next() const { return queue_.front() == this; }

 private:
  std::list<const void*>& queue_;
  async::Event& changed_;
};

std::uint64_t changed_by(std::uint64_t value, std::int64_t change) {
  if (change >= 0) return value + static_cast<std::uint64_t>(change);
  return value - std::min(value, static_cast<std::uint64_t>(-change));
}

}  // namespace

Session::Session(async::Loop& loop, const SessionClock& now, StoredSession stored, SessionId id)
    : now_(now),
      record_(std::move(stored.record)),
      directory_(std::make_shared<const UniqueFd>(std::move(stored.directory))),
      id_(std::move(id)),
      last_used_(stored.last_used),
      changed_(loop) {}

void Session::set_size(plan::WorkspaceSize size) {
  size_ = size;
  size_exact_ = true;
}

void Session::add_to_size(const workspace::SizeChange& change) {
  if (!size_) return;
  size_exact_ = size_exact_ && change.exact;
  size_->bytes = changed_by(size_->bytes, change.bytes);
  size_->inodes = changed_by(size_->inodes, change.inodes);
}

void Session::end(std::optional<Expiry> why) {
  ending_ = true;
  expiry_ = why;
  if (!why) deleted_->cancel();
  changed_.notify_all();
}

void Session::revive() {
  ending_ = false;
  expiry_.reset();
  deleted_ = std::make_unique<async::Cancellation>();
}

Task<void> Session::wait_unused(async::Deadline deadline) {
  async::Wake wake = async::Wake::kReady;
  while (in_use() && wake == async::Wake::kReady) wake = co_await changed_.wait(deadline);
}

void Session::release(bool of_run, bool of_change) {
  if (of_run) running_ = false;
  if (of_change) changing_ = false;
  if (!of_run) --files_;
  last_used_ = std::max(last_used_, now_());
  used_ = true;
  changed_.notify_all();
}

Task<OrProblem<Hold>> hold_for_run(SessionPtr session, bool wait, async::Deadline deadline,
                                   const async::Cancellation* gone) {
  Session& s = *session;
  const auto is_busy = [&s] { return s.running_ || s.uploads_ > 0; };
  if (s.ending_) co_return session_deleted(s.record_.id);
  if (!wait && (is_busy() || !s.waiting_.empty())) co_return session_busy(s);
  if (s.waiting_.size() >= Session::kMaxWaiting) co_return session_queue_full(s);
  const Turn turn(s.waiting_, s.changed_);
  while (is_busy() || !turn.is_next()) {
    const async::Wake wake = co_await s.changed_.wait(deadline, gone);
    if (s.ending_) co_return session_deleted(s.record_.id);
    if (wake != async::Wake::kReady) co_return session_wait_over(s);
  }
  s.running_ = true;  // from here on no files call begins
  Hold hold(session, Hold::Kind::kRun);
  while (s.files_ > 0 && !s.ending_) (void)co_await s.changed_.wait();
  if (s.ending_) co_return session_deleted(s.record_.id);
  co_return std::move(hold);
}

Task<OrProblem<Hold>> hold_for_reading(SessionPtr session) {
  Session& s = *session;
  while (!s.ending_ && !s.running_ && (s.changing_ || s.changes_waiting_ > 0)) {
    (void)co_await s.changed_.wait();
  }
  if (s.ending_) co_return session_deleted(s.record_.id);
  if (s.running_) co_return session_busy(s);
  ++s.files_;
  co_return Hold(session, Hold::Kind::kReading);
}

Task<OrProblem<Hold>> hold_for_change(SessionPtr session) {
  Session& s = *session;
  ++s.changes_waiting_;
  while (!s.ending_ && !s.running_ && s.files_ > 0) (void)co_await s.changed_.wait();
  --s.changes_waiting_;
  if (s.ending_ || s.running_) s.changed_.notify_all();  // for those that let it go first
  if (s.ending_) co_return session_deleted(s.record_.id);
  if (s.running_) co_return session_busy(s);
  ++s.files_;
  s.changing_ = true;
  co_return Hold(session, Hold::Kind::kChange);
}

OrProblem<UploadHold> UploadHold::take(const SessionPtr& session) {
  if (session->ending_) return session_deleted(session->record_.id);
  if (session->running_) return session_busy(*session);
  if (session->uploads_ >= Session::kMaxUploads) return too_many_uploads(Session::kMaxUploads);
  ++session->uploads_;
  return UploadHold(session);
}

UploadHold::~UploadHold() {
  if (!session_) return;
  session_->reserved_ -= reserved_;
  --session_->uploads_;
  session_->last_used_ = std::max(session_->last_used_, session_->now_());
  session_->used_ = true;
  session_->changed_.notify_all();
}

bool UploadHold::reserve(std::uint64_t bytes) {
  const std::uint64_t others = session_->reserved_ - reserved_;
  const std::uint64_t quota = session_->record_.work;
  const std::uint64_t taken = session_->size_->bytes + others;
  if (taken > quota || bytes > quota - taken) return false;
  session_->reserved_ = others + bytes;
  reserved_ = bytes;
  return true;
}

}  // namespace sbx::daemon
