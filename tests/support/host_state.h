// HostState: what an escape would change of this machine, as lines that can be compared.
//
// Device nodes with type, numbers, mode and owner; the files of /etc and the programs of /usr/bin
// and /usr/sbin with mode, owner and times of change (of those in /etc the contents too); kernel
// settings, modules, swap areas and the hostname. Only reads, and as whoever asks: what he cannot
// read is not in it.
#pragma once

#include <chrono>

#include "tests/support/leaks.h"

namespace sbx::test {

[[nodiscard]] Things host_state();

// How far the wall clock is ahead of the monotonic one: changes when somebody sets it.
[[nodiscard]] std::chrono::milliseconds clock_offset();

// Lines that are in one and not in the other, "- " and "+ " in front.
[[nodiscard]] Things difference(const Things& before, const Things& after);

}  // namespace sbx::test
