// Judges a run: passed, or which class of failure, from the runtime's facts. Service: agentd. Pure.
//
// Status, exit code, limits that were hit and the list of collected files decide; what the program
// says of itself decides nothing but the label `syntax`, and its envelope is checked against the
// files.
#pragma once

#include <optional>
#include <string>

#include "agentd/envelope/envelope.h"
#include "agentd/loop/state.h"
#include "agentd/prompts/composer.h"
#include "agentd/redact/redactor.h"
#include "agentd/sandbox/sandbox.h"

namespace agentd::loop {

struct Judgement {
  std::optional<FailureClass> failure{};  // none: passed
  // For the record. `code` is stable: the envelope's rule, "exit", "signal", the run's status.
  std::string code{};
  std::string detail{};  // one sentence; may quote the program
  prompts::Repair repair{};
  envelope::Envelope envelope{};  // when passed
};

// `run`: after clean_run(); `redactor` is for what is quoted of stdout. `syntax_error_pattern`: of
// the language, as sbxd tells it; one that does not compile matches nothing.
[[nodiscard]] Judgement judge(const sandbox::RunResult& run,
                              const std::string& syntax_error_pattern,
                              const redact::Redactor& redactor);

}  // namespace agentd::loop
