#include "agentd/sandbox/watch.h"

#include <utility>

namespace agentd::sandbox {

using sbx::async::Task;
using sbx::async::Wake;
using std::chrono::steady_clock;

SandboxWatch::SandboxWatch(sbx::async::Loop& loop, Sandbox& sandbox, WatchTimes times)
    : sandbox_(sandbox), times_(times), seen_now_(loop), tasks_(loop) {}

Task<InfoOutcome> SandboxWatch::state(const sbx::async::Cancellation* cancellation) {
  // That it does not answer may be over at any time.
  const bool was_well = seen_ && std::holds_alternative<SharedInfo>(*seen_);
  const bool is_fresh = seen_at_ && steady_clock::now() - *seen_at_ < times_.fresh;
  if (was_well && !looking_since_ && is_fresh) {
    co_return *seen_;
  }
  if (!looking_since_) {
    looking_since_ = steady_clock::now();
    tasks_.spawn(look());
  }
  // Of a look that began before, the time counts that it has had. Whoever is woken first may have
  // begun the next one, which is not waited for.
  const auto deadline = *looking_since_ + times_.wait;
  for (const std::uint64_t before = looks_; looks_ == before;) {
    const Wake wake = co_await seen_now_.wait(deadline, cancellation);
    if (wake == Wake::kCancelled) {
      co_return SandboxFailure{.kind = SandboxFailure::Kind::kCancelled, .detail = "cancelled"};
    }
    if (wake == Wake::kDeadline) co_return silence(answered_at_);
  }
  co_return *seen_;
}

Task<void> SandboxWatch::look() {
  seen_at_ = steady_clock::now();  // a doubt from here on is newer than the answer
  InfoOutcome outcome = co_await sandbox_.info(nullptr);
  if (std::holds_alternative<SharedInfo>(outcome)) answered_at_ = steady_clock::now();
  seen_ = std::move(outcome);
  ++looks_;
  looking_since_.reset();
  seen_now_.notify_all();
}

}  // namespace agentd::sandbox
