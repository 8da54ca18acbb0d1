// The running daemon. Owns the loop and everything on it, from the first connection to the last
// answer. The main thread.
//
// Ends by SIGTERM, SIGINT or SIGHUP: new requests get 503, those under way may end for
// `drain_seconds`, are cancelled then (or at the second signal), and every answer is sent.
#pragma once

#include "agentd/daemon/startup.h"
#include "runtime/base/unique_fd.h"

namespace agentd::daemon {

// `signals`: of block_ending_signals(), called before start_up(). Serves until it is told to end.
// The process's exit code.
[[nodiscard]] int serve(Started started, sbx::UniqueFd signals);

}  // namespace agentd::daemon
