// What agentctl prints. Nothing here ends it: a disk may be full.
#pragma once

#include <string_view>

namespace agentd::cli {

// To stdout, buffered.
void print(std::string_view text);
// What was printed stands before what is told next. finish_output() says if it failed.
void flush_output();
// To stderr. There is nowhere left to say that it failed.
void tell(std::string_view text);
// After the last print(). False: not all of it could be written, which stderr says now.
[[nodiscard]] bool finish_output();

}  // namespace agentd::cli
