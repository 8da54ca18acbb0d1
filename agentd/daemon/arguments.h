// agentd's command line, taken apart. Pure.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace agentd::daemon {

enum class Verb { kServe, kRecord, kCheckConfig, kPrintConfig, kHelp, kVersion };

struct Arguments {
  Verb verb = Verb::kServe;
  std::string config{};       // --config FILE; empty: the usual places
  std::string socket{};       // --socket PATH, before the config's
  std::string sbxd_socket{};  // --sbxd-socket PATH, likewise
  std::string state_dir{};    // --state-dir DIR, likewise
  std::string listen{};       // --listen ADDRESS:PORT, likewise
  std::string out{};          // record --out FILE
};

// `words` without the program's name. kInvalid for what does not exist, for an option that is given
// twice and for two verbs, with the fix. Help and version go before every verb.
[[nodiscard]] sbx::Result<Arguments> parse_arguments(const std::vector<std::string>& words);
[[nodiscard]] std::string help_text();

}  // namespace agentd::daemon
