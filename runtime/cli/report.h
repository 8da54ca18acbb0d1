// What sbx-run says about a run on stderr, beside the program's own output. Stage: edge. Pure.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/collect/outcome.h"
#include "runtime/policy/policy.h"

namespace sbx::cli {

// Each line is escaped, without "sbx-run: " and without its end.
using Lines = std::vector<std::string>;

// Between the two ends of a stream whose middle was dropped. `stream` is "stdout" or "stderr".
[[nodiscard]] std::string cut_line(std::string_view stream, std::uint64_t dropped,
                                   std::uint64_t limit);
// Why it ended, what layer did not hold, which files came or did not come out; empty for a run in
// which nothing went wrong and nothing was left unsaved. `saving`: --output-dir was given.
[[nodiscard]] Lines outcome_lines(const collect::Outcome& outcome, bool saving);
// What the profile opened of what ends a run otherwise; empty for a profile that did not.
[[nodiscard]] Lines loosened_lines(const policy::Policy& policy);
// Which of the limits that were to be were lowered to a ceiling, and to what.
[[nodiscard]] Lines lowered_lines(const policy::Limits& wanted, const policy::Limits& applied);
// --learn: which calls were denied. `learned`: what learn_profile made of it.
[[nodiscard]] Lines learn_lines(const collect::Outcome& outcome, std::string_view learned);
// --learn: the TOML of a profile that is the run's (`profile`, its text) and allows those that are
// safe to allow too, with a comment for each other: why it is not offered. Comments alone when
// there is none to allow; hostile calls are never in it.
[[nodiscard]] std::string learn_profile(const collect::Outcome& outcome, std::string_view profile);
// An error of ours or the caller's, with its fix.
[[nodiscard]] Lines error_lines(const Error& error);

// Writes the lines to stderr, each with "sbx-run: " in front, in one write. `new_line`: begin one.
void print_lines(const Lines& lines, bool new_line = false);

}  // namespace sbx::cli
