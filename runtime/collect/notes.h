// Notes: what shaped the run, one sentence each, for a person or a model to act on. Stage: collect.
//
// A note of source "kernel" rests on a counter or on our own deadline. One of source "program"
// quotes what the program wrote, which it may have invented: it never changes a verdict.
#pragma once

#include <string>
#include <vector>

#include "runtime/collect/outcome.h"
#include "runtime/supervise/ending.h"

namespace sbx::collect {

struct NoteContext {
  Status status = Status::kSandboxError;
  policy::Limits limits{};
  std::vector<policy::CallerLimit> caller_limits{};  // Plan's
  bool has_files = false;                // anything was in /output, collected or refused
  std::string missing_module_pattern{};  // the language's; POSIX extended, group 1 is the module
  std::vector<std::string> packages{};   // what the image has for this language
};

// Names inside the sentences are escaped for a terminal.
[[nodiscard]] std::vector<Note> make_notes(const supervise::Ending& ending,
                                           const NoteContext& context);

}  // namespace sbx::collect
