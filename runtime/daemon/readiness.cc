#include "runtime/daemon/readiness.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "http/async/fd_watch.h"
#include "runtime/base/log.h"
#include "runtime/base/own_limits.h"
#include "runtime/daemon/config_check.h"
#include "runtime/daemon/retry_after.h"
#include "runtime/spawn/spawner.h"

namespace sbx::daemon {
namespace {

using http::Problem;
using std::chrono::seconds;

constexpr seconds kAskPeriod{5};
constexpr seconds kAskAgain{1};
constexpr seconds kDoubt{3};
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

std::optional<Problem> Readiness::problem() {
  if (!disabled_.empty()) {
    return Problem{.status = 503,
                   .code = kSandboxUnavailable,
                   .detail = disabled_,
                   .retry_after = kRetryLater};
  }
  if (silence_) {
    return Problem{.status = 503,
                   .code = kSandboxUnavailable,
                   .detail = "No run can start: " + silence_->detail + ".",
                   .fix = silence_->fix,
                   .retry_after = kRetryLater};
  }
  if (shortage_) {
    return Problem{.status = 503,
                   .code = "host_lacks",
                   .detail = "No run can start: " + to_string(*shortage_) + ".",
                   .fix = shortage_->fix,
                   .retry_after = kRetrySoon};
  }
  if (const auto there = sandbox_.check_records(); !there) {
    return Problem{.status = 503,
                   .code = "host_lacks",
                   .detail = "No run can start: " + to_string(there.error()) + ".",
                   .fix = there.error().fix,
                   .retry_after = kRetryLater};
  }
  if (auto usable = check_audit(); !usable) {
    const std::string& fix = usable.error().fix;
    return Problem{.status = 503,
                   .code = "audit_unavailable",
                   .detail = "No run without its audit line: " + to_string(usable.error()),
                   .fix = fix.empty() ? "make room on the disk of sbxd's state directory" : fix,
                   .retry_after = kRetryLater};
  }
  return std::nullopt;
}

std::optional<Problem> Readiness::image_problem() {
  const auto found = sandbox_.check_image();
  const bool had_image = std::exchange(has_image_, found.has_value());
  if (found) {
    if (!had_image) log::info("the image can be opened again");
    return std::nullopt;
  }
  const Error& error = found.error();
  if (had_image) {
    log::error("no run can start: its image cannot be opened",
               {{"error", to_string(error)}, {"fix", fix_by_config(error.fix)}});
  }
  return Problem{.status = 503,
                 .code = "host_lacks",
                 .detail = "No run can start: " + to_string(error),
                 .fix = fix_by_config(error.fix),
                 .retry_after = kRetryLater};
}

void Readiness::fall_silent() {
  if (silence_) return;
  sandbox_.note_spawner_silence(true);
  silence_ = spawn::spawner_silent(spawn::kSpawnerOperation, sandbox_.spawner_pid());
  log::error("the spawner is silent: no run starts until it answers",
             {{"error", to_string(*silence_)}, {"fix", silence_->fix}});
}

void Readiness::end_silence() {
  if (!silence_) return;
  silence_.reset();
  sandbox_.note_spawner_silence(false);
  log::info("the spawner answers again");
}

void Readiness::note_shortage(const Error& error) {
  // What passes as runs end, a full queue or no descriptor, the runs themselves tell.
  if (error.sys_errno != ETOOMANYREFS) return shortage_.reset();
  if (!shortage_) {
    log::error("no run can start", {{"error", to_string(error)}, {"fix", error.fix}});
  }
  shortage_ = error;
}

// One question at a time, so that they do not fill the queue of a spawner that was stopped. It is
// waited for until it is answered: then runs can start again.
async::Task<void> Readiness::ask_spawner() {
  for (;;) {
    (void)co_await loop_.sleep_until(async::after(shortage_ ? kAskAgain : kAskPeriod));
    const auto answer = sandbox_.ask_spawner();
    if (!answer) {
      note_shortage(name_scarcity(answer.error()));
      continue;
    }
    if (std::exchange(shortage_, std::nullopt)) log::info("runs can start again");
    auto watch = async::FdWatch::watch(loop_, answer->get());
    if (!watch) continue;
    const auto late = async::after(spawn::kAnswerPatience);
    const async::Wake wake = co_await watch->readable(late);
    if (wake != async::Wake::kReady) {
      fall_silent();
      (void)co_await watch->readable();
    }
    end_silence();
  }
}

async::Task<void> Readiness::doubt_spawner() {
  const auto late = async::after(kDoubt);
  auto answer = sandbox_.ask_spawner();
  while (!answer && answer.error().sys_errno == EAGAIN && async::after(kLook) < late) {
    (void)co_await loop_.sleep_until(async::after(kLook));  // its queue is full
    answer = sandbox_.ask_spawner();
  }
  if (!answer && answer.error().sys_errno == EAGAIN) fall_silent();
  if (!answer) co_return;
  auto watch = async::FdWatch::watch(loop_, answer->get());
  if (!watch) co_return;
  const async::Wake wake = co_await watch->readable(late);
  if (wake != async::Wake::kReady) fall_silent();
}

Result<void> Readiness::check_audit() {
  const bool was_healthy = audit_.healthy();
  auto usable = audit_.check();
  if (!usable && was_healthy) {
    log::error("no run starts: audit lines would be lost",
               {{"error", to_string(usable.error())}, {"fix", usable.error().fix}});
  }
  return usable;
}

}  // namespace sbx::daemon
