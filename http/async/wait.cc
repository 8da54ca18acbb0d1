#include "http/async/wait.h"

#include "http/async/cancellation.h"
#include "http/async/event.h"
#include "http/async/loop.h"

namespace sbx::async {

Wait::~Wait() {
  if (timed_) loop_.forget_timer(*this);
}

bool Wait::await_ready() {
  if (at_once_) return false;
  if (cancellation_ != nullptr && cancellation_->cancelled()) {
    wake_ = Wake::kCancelled;
    return true;
  }
  if (deadline_ != kNoDeadline && deadline_ <= std::chrono::steady_clock::now()) {
    wake_ = Wake::kDeadline;
    return true;
  }
  return false;
}

void Wait::await_suspend(std::coroutine_handle<> awaiting) {
  awaiting_ = awaiting;
  if (at_once_) {
    loop_.queue(*this);
    return;
  }
  if (source_ != nullptr) source_->waits_.push_back(*this);
  if (cancellation_ != nullptr) cancellation_->waits_.push_back(*this);
  if (deadline_ != kNoDeadline) loop_.add_timer(*this);
}

void Wait::wake(Wake reason) {
  wake_ = reason;
  detail::Link<detail::BySource>::unlink();
  detail::Link<detail::ByCancellation>::unlink();
  if (timed_) loop_.forget_timer(*this);
  loop_.queue(*this);
}

}  // namespace sbx::async
