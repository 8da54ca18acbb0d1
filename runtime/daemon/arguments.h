// sbxd's command line, taken apart. Stage: daemon, edge. Pure.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace sbx::daemon {

enum class Verb { kServe, kCheckConfig, kPrintConfig, kAuditVerify, kHelp, kAuditHelp, kVersion };

struct Arguments {
  Verb verb = Verb::kServe;
  std::string config;      // --config FILE; empty: the usual places
  std::string socket;      // --socket PATH, before the config's
  std::string state_dir;   // --state-dir DIR, likewise
  std::string audit_file;  // audit verify FILE; empty: the state directory's
};

// `words` without the program's name. kInvalid for what does not exist, for an option that is given
// twice and for two verbs, with the fix. Help and version go before every verb.
[[nodiscard]] Result<Arguments> parse_arguments(const std::vector<std::string>& words);
[[nodiscard]] std::string help_text();
[[nodiscard]] std::string audit_help_text();

}  // namespace sbx::daemon
