// Start-up: from the command line to a process that may read a client's first byte. Stage: daemon.
//
// In this order: configuration, user, directories, sockets, spawner (the last thing that root
// does), no privilege left, audit file, leftovers of the dead, and one run that proves that this
// host can do it. Everything blocks, and nothing is served meanwhile. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "http/listener.h"
#include "runtime/base/result.h"
#include "runtime/daemon/arguments.h"
#include "runtime/daemon/audit_log.h"
#include "runtime/daemon/config.h"
#include "runtime/daemon/identity.h"
#include "runtime/daemon/places.h"
#include "runtime/daemon/run_request.h"
#include "runtime/daemon/session_store.h"
#include "runtime/policy/config.h"
#include "runtime/sandbox.h"

namespace sbx::daemon {

struct Configuration {
  DaemonConfig daemon;
  policy::RuntimeConfig runtime;
  std::vector<policy::Policy> profiles;  // shipped, "default" first, then the configured ones
  std::vector<std::string> warnings;     // of what may work all the same
};
// Reads and checks both files, the profiles, and what of them this host must have. What
// --check-config does.
[[nodiscard]] Result<Configuration> load_configuration(const Arguments& arguments);

struct Started {
  Configuration configuration;
  Places places;
  std::vector<http::Listener> listeners;
  Sandbox sandbox;
  AuditLog audit;
  SessionStore sessions;
  RequestRules rules;
  std::uint64_t memory_budget = 0;
  Sandbox::Swept swept;  // what a dead daemon had left
};
// kInvalid: a mistake of the caller's (exit 2); else what the host lacks, with the fix.
[[nodiscard]] Result<Started> start_up(const Arguments& arguments);

}  // namespace sbx::daemon
