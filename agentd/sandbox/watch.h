// SandboxWatch: whether the sandbox answers, told within a second whatever it does.
//
// Who asks starts a look in the background where the last one is some seconds old, or in doubt, and
// waits for it so long that a sandbox that works has answered. One that has not by then is silent:
// stopped, or hung. Nobody looks while nobody asks. On the loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "agentd/sandbox/sandbox.h"
#include "http/async/event.h"
#include "http/async/loop.h"
#include "http/async/task_group.h"

namespace agentd::sandbox {

struct WatchTimes {
  std::chrono::milliseconds fresh{5'000};  // an answer that is older is looked for again
  std::chrono::milliseconds wait{1'000};   // for a look
};

class SandboxWatch {
 public:
  // Both borrowed; they outlive it. `sandbox` must not remember what info() said.
  SandboxWatch(sbx::async::Loop& loop, Sandbox& sandbox, WatchTimes times = {});

  // Ends with kCancelled as soon as `cancellation` is raised.
  [[nodiscard]] sbx::async::Task<InfoOutcome> state(const sbx::async::Cancellation* cancellation);
  // The next state() looks: somebody had no answer, or wants to know it now.
  void doubt() { seen_at_.reset(); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  [[nodiscard]] sbx::async::Task<void> look();

  Sandbox& sandbox_;
  WatchTimes times_;
  std::optional<Time> looking_since_;
  std::uint64_t looks_ = 0;  // that have ended
  std::optional<InfoOutcome> seen_;
  std::optional<Time> seen_at_;  // its look's start; empty: by now it may be otherwise
  std::optional<Time> answered_at_;
  sbx::async::Event seen_now_;
  sbx::async::TaskGroup tasks_;  // last: its task uses the others
};

}  // namespace agentd::sandbox
