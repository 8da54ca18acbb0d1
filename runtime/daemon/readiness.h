// Readiness: whether anything keeps every run from starting: a spawner that is gone, silent or
// cannot be sent descriptors, an audit file that takes no line, an image that cannot be opened.
// Stage: daemon, the loop's thread.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "http/async/loop.h"
#include "http/async/task.h"
#include "http/problem.h"
#include "runtime/daemon/audit_log.h"
#include "runtime/sandbox.h"

namespace sbx::daemon {

// The code of problems that are the sandbox's.
inline constexpr char kSandboxUnavailable[] = "sandbox_unavailable";  // 503

class Readiness {
 public:
  // All are borrowed.
  Readiness(async::Loop& loop, Sandbox& sandbox, AuditLog& audit)
      : loop_(loop), sandbox_(sandbox), audit_(audit) {}
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // Why no run can start now, or nothing. Looks after the audit file: microseconds.
  [[nodiscard]] std::optional<http::Problem> problem();

  // The same of the image, which each start() opens for itself: tens of system calls. Logged when
  // it changes.
  [[nodiscard]] std::optional<http::Problem> image_problem();

  // The spawner is gone: no run can start any more.
  void disable(std::string why) { disabled_ = std::move(why); }
  // The spawner did not answer: no run can start until ask_spawner() has an answer.
  void fall_silent();
  // Asks it now, for whoever cannot wait so long for runs to end. Falls silent without an answer.
  [[nodiscard]] async::Task<void> doubt_spawner();
  // Asks it for ever, every few seconds.
  [[nodiscard]] async::Task<void> ask_spawner();

  // AuditLog::check(), which says in the log when the file gets lost.
  [[nodiscard]] Result<void> check_audit();

 private:
  void end_silence();
  // No descriptor can be sent to the spawner, and so no run: others of our user have too many on
  // their way.
  void note_shortage(const Error& error);

  async::Loop& loop_;
  Sandbox& sandbox_;
  AuditLog& audit_;
  std::string disabled_;
  std::optional<Error> silence_, shortage_;
  bool has_image_ = true;
};

}  // namespace sbx::daemon
