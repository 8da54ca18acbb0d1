// Puts an Outcome together: verdict, limits, notes, usage, captured output, files. Stage: collect.
// Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/collect/outcome.h"
#include "runtime/supervise/ending.h"

namespace sbx::collect {

// What is known of a run apart from its Ending.
struct OutcomeContext {
  std::string id;
  policy::Limits limits;                           // as applied
  std::vector<policy::CallerLimit> caller_limits;  // Plan's
  std::string profile;
  std::string language;  // empty for a plain argv
  std::string image_name, image_digest;
  std::string start = "cold";
  // As planned; the Ending's layer failures are applied to them. Without an entry "uid_separation"
  // that is held, payload and init are taken to share a uid.
  std::vector<policy::LayerReport> layers;
  std::string missing_module_pattern;  // Language's
  std::vector<std::string> packages;   // names of what the image has for this language

  // From Collection; moved in.
  std::vector<CollectedFile> files;
  std::vector<RefusedEntry> refused;
  std::vector<std::string> collect_limits_hit;
  std::optional<SavedWorkspace> workspace;
  std::optional<Error> collect_failure;  // files of /output, or the workspace, were lost:
                                         // sandbox_error, the rest is kept
  std::chrono::nanoseconds collect_time{};
};

[[nodiscard]] Outcome make_outcome(const supervise::Ending& ending, OutcomeContext context);
// The result of a run that was refused before it began: sandbox_error with `error`.
[[nodiscard]] Outcome make_refusal(const Error& error, OutcomeContext context);

}  // namespace sbx::collect
