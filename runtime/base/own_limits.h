// Our own resource limits, as whoever started us left them. Any stage; a process's own business.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace sbx {

// Soft limits to the hard ones, so that one default of a shell or a service does not end what we
// start; of the stack only up to what is usual, since more of it moves where everything is mapped.
void raise_soft_limits();

// Runs one by one; those of sbx-run selftest, several at once; a daemon's, with threads.
enum class OwnWork { kRuns, kSelftest, kDaemon };

// kHost, naming the limit, what it is and what is needed, where a hard limit does not let us do
// our work: what fails for want of a descriptor would be told as something else.
[[nodiscard]] Result<void> check_own_limits(OwnWork work = OwnWork::kRuns);

inline constexpr const char* kMemoryFix =
    "free memory, or allow more where this is started from: ulimit -d and -v, or LimitDATA= and "
    "LimitAS= of the unit";

// On stderr, without an allocation: there is no memory left for `program` itself, and the fix. For
// the end of a process, when what was begun has been ended by its owners.
void tell_out_of_memory(std::string_view program);

// What to do where a call says that we have no process (EAGAIN), memory (ENOMEM) or descriptor
// (EMFILE, ENFILE) left, or that our user has as many on their way through sockets as he may
// (ETOOMANYREFS); empty for any other errno. EAGAIN is what a thread's creation says of memory too:
// told apart by whether a stack finds room now.
[[nodiscard]] std::string scarcity_fix(int sys_errno);

// `error` as the host's lack (kHost), with that fix, where it is of such an errno; else as it is.
[[nodiscard]] Error name_scarcity(Error error);

}  // namespace sbx
