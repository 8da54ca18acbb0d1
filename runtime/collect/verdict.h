// The judgement over an Ending: which status, by which evidence. Stage: collect.
//
// Pure: evidence in, verdict out. Never success by default: kOk needs exit status 0 as init
// reported it, after a reported exec, and nothing else that went wrong.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/collect/outcome.h"
#include "runtime/policy/limits.h"
#include "runtime/supervise/ending.h"

namespace sbx::collect {

struct VerdictFacts {
  // Payload and init have different kernel uids. Where they share one, a payload may find a way to
  // kill init, so init's death is the payload's doing; else it is a fault of ours.
  bool uid_separation_held = true;
  // RLIMIT_CPU of whoever started us, where it is less than the run was promised.
  std::optional<std::uint64_t> caller_cpu_seconds = std::nullopt;
};

struct Verdict {
  Status status = Status::kSandboxError;
  int exit_code = -1;
  std::optional<int> signal = std::nullopt;
  std::optional<ErrorInfo> error = std::nullopt;  // with kSandboxError only
};

[[nodiscard]] Verdict judge(const supervise::Ending& ending, const VerdictFacts& facts);

// Contract names of the limits that were reached, apart from the collector's own (Collection). In
// the order of the contract's table. `status` is the verdict: a deadline counts when it ended the
// run.
[[nodiscard]] std::vector<std::string> limits_reached(const supervise::Ending& ending,
                                                      Status status);

[[nodiscard]] ErrorInfo error_info(const Error& error);

}  // namespace sbx::collect
