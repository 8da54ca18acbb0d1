// From what was typed to a Policy and a Request: the only place of sbx-run that opens the caller's
// files. Stage: edge (sbx-run). Nothing here makes a process; every refusal is kInvalid (exit 2).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/cli/arguments.h"
#include "runtime/plan/request.h"
#include "runtime/policy/policy.h"

namespace sbx::cli {

// The profile with the flags' limits and --allow-missing applied. `profile_text`: its text where it
// was read already.
[[nodiscard]] Result<policy::Policy> make_policy(
    const Arguments& arguments, const std::optional<std::string>& profile_text = std::nullopt);

// Reads the program's text and the --input files. Blocks on a pipe that the caller named, and on
// a FIFO until wall_seconds have passed without a byte.
// `limits` bound what is read at all, so that a huge --input is refused by its size.
[[nodiscard]] Result<plan::Request> make_request(const Arguments& arguments,
                                                 const policy::Limits& limits);

// What the program reads as its standard input. Owned when it is --stdin's file; `fd` is -1 for
// none: a terminal, a closed descriptor, or one that was read as the program's text.
struct StandardInput {
  int fd = -1;
  UniqueFd owned;
};
[[nodiscard]] Result<StandardInput> open_standard_input(const Arguments& arguments);

// One PATH[:NAME], taken apart. The last ':' begins NAME unless a '/' follows it, or the whole text
// names a file and the part before the ':' does not.
struct InputSpelling {
  std::string path;
  std::string name;
};
[[nodiscard]] Result<InputSpelling> parse_input(const std::string& text);

}  // namespace sbx::cli
