// Start-up: from the command line to everything that serving needs and the loop does not make.
// Blocks; one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agentd/api/tcp_guard.h"
#include "agentd/config/config.h"
#include "agentd/config/held_state.h"
#include "agentd/config/places.h"
#include "agentd/daemon/arguments.h"
#include "agentd/history/artifact_files.h"
#include "agentd/history/history.h"
#include "agentd/ledger/book.h"
#include "agentd/prompts/composer.h"
#include "agentd/redact/redactor.h"
#include "agentd/redact/secret.h"
#include "agentd/store/database.h"
#include "http/listener.h"
#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace agentd::daemon {

struct Configuration {
  config::AgentConfig values;
  config::KeyLines lines;
};
// The configuration with the command line over it, checked as far as that goes without a host.
[[nodiscard]] sbx::Result<Configuration> load_configuration(const Arguments& arguments);

// The same with the key's place and the recordings looked into, as at the start: what
// --check-config says. True: as it is. False: but for a systemd credential, which is not there
// outside of the service.
[[nodiscard]] sbx::Result<bool> check_configuration(const Arguments& arguments);

struct Started {
  config::AgentConfig configuration;
  config::Places places;
  sbx::UniqueFd state_lock;
  config::HeldState held_state;
  std::string record_to;  // empty: nowhere
  prompts::Composer composer;
  redact::Secret key;
  redact::Redactor redactor;
  std::vector<sbx::http::Listener> listeners;
  std::optional<api::TcpGuard> guard;  // when one of them is TCP
  std::string url;                     // for the first line; empty without TCP
  store::Database database;            // of both:
  ledger::Book book;
  history::History history;
  history::ArtifactFiles artifacts;
};
// kInvalid: a mistake of the caller's (exit 2); else what the host lacks, with the fix.
[[nodiscard]] sbx::Result<Started> start_up(const Arguments& arguments);

}  // namespace agentd::daemon
