// drive(): takes a Run to its end on the event loop. Stage: daemon, the loop's thread.
//
// A run waits on many descriptors that change with every step. They are put into an epoll
// descriptor of the run's own, and that one is what the loop waits on.
#pragma once

#include "http/async/cancellation.h"
#include "http/async/loop.h"
#include "http/async/task.h"
#include "runtime/base/result.h"
#include "runtime/sandbox.h"

namespace sbx::daemon {

// Returns when run.done(); `cancellation` cancels the run, and then its end is waited for. An
// error, of epoll itself, leaves a run that is not done: its destructor ends it.
[[nodiscard]] async::Task<Result<void>> drive(async::Loop& loop, Run& run,
                                              const async::Cancellation& cancellation);

}  // namespace sbx::daemon
