// What the process of a program does besides its work: the descriptors that it begins with; for a
// daemon the signals that end it, what it tells systemd, and figures of itself for its metrics.
// Stage: base.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx {

// Descriptors 0 to 2 exist from here on, so that nothing we open becomes one of them by chance. In
// the place of a standard output that is closed stands one that cannot be written: what has nowhere
// to go is an error, not a success without output. A file that may not get larger (ulimit -f) is an
// error of write(2) too: SIGXFSZ is ignored. SIGCHLD is not, whatever the caller did: who ignores
// it cannot wait for a child. False: there is no /dev/null.
[[nodiscard]] bool prepare_process();

// Blocks SIGTERM, SIGINT and SIGHUP for this thread and those it makes. A signalfd(2),
// non-blocking, that tells of them. At start-up, so that none is lost.
[[nodiscard]] Result<UniqueFd> block_ending_signals();

// sd_notify(3): one datagram ("READY=1") to the socket that systemd names; nothing without one.
void notify_systemd(std::string_view state);

// Of this process; 0 when /proc does not tell.
[[nodiscard]] std::uint64_t resident_bytes();
[[nodiscard]] std::uint64_t open_descriptors();
[[nodiscard]] double cpu_seconds();  // user and system

}  // namespace sbx
