// What is looked for in a program's stderr. Stage: collect; internal to its notes.
#pragma once

#include <optional>
#include <string>

#include "runtime/supervise/ending.h"

namespace sbx::collect {

// The end of stderr, without NULs so that the C matcher sees all of it.
[[nodiscard]] std::string searched_text(const supervise::Captured& captured);

// Group 1 of the last match: the last error is the one that ended the program.
[[nodiscard]] std::optional<std::string> last_match(const std::string& pattern,
                                                    const std::string& text);

}  // namespace sbx::collect
