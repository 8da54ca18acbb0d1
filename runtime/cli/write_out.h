// Writing to a stream that belongs to whoever started us. Stage: edge (sbx-run).
#pragma once

#include <string_view>

#include "runtime/base/result.h"

namespace sbx::cli {

// Writes all of it. The descriptor may have been made non-blocking by another of its users: then it
// is waited for, as a blocking one is.
[[nodiscard]] Result<void> write_out(int fd, std::string_view bytes);

// To stdout. What could not be written is told on stderr.
[[nodiscard]] bool deliver(std::string_view text);

}  // namespace sbx::cli
