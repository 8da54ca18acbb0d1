// Service: the running daemon. Owns the loop and everything on it, from the first connection to the
// last answer. Stage: daemon, the main thread.
//
// Ends by SIGTERM, SIGINT or SIGHUP: new runs get 503, those under way may end for `drain_seconds`,
// are cancelled then (or at the second signal), and every answer is sent. Ends with a failure when
// the spawner dies: what it ran ends as sandbox_error, and since only root's start can make another
// one, whoever started sbxd has to start it again (the unit does).
#pragma once

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/daemon/startup.h"

namespace sbx::daemon {

// `signals`: of block_ending_signals(), called before start_up(). Serves until it is told to end.
// The process's exit code.
[[nodiscard]] int serve(Started started, UniqueFd signals);

}  // namespace sbx::daemon
