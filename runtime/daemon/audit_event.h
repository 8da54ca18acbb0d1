// What the audit file says of one run. Stage: daemon. Pure.
//
// Never what was in it: the program and its inputs are there by hash, output not at all.
#pragma once

#include <string>

#include "http/message.h"
#include "runtime/collect/outcome.h"

namespace sbx::daemon {

// What is known before the run.
struct AuditSubject {
  http::Peer peer;
  std::string session;  // id, or empty
  std::string program_sha256;
  std::string inputs_sha256;  // empty without inputs
  std::size_t inputs = 0;
};

// JSON members, for AuditLog::append.
[[nodiscard]] std::string run_event(const AuditSubject& subject, const collect::Outcome& outcome);
// A run that its daemon did not survive, found by a later one.
[[nodiscard]] std::string reaped_event(const std::string& run);

}  // namespace sbx::daemon
