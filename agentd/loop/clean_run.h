// Takes keys out of what a run said, before anything of it is cut, quoted or kept. Pure.
#pragma once

#include "agentd/redact/redactor.h"
#include "agentd/sandbox/sandbox.h"

namespace agentd::loop {

// All but stdout and the contents of files, which may be a result's, and stay as they are; but
// where the sandbox dropped the middle of a stream, so much more goes that no half of a key is left
// there.
//
// SECURITY: whoever cuts stdout cleans it first.
void clean_run(sandbox::RunResult& run, const redact::Redactor& redactor);

}  // namespace agentd::loop
