// What was typed after agentctl, taken apart and not yet judged.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace agentd::cli {

enum class Verb { kAsk, kShow, kHistory, kCancel, kDoctor, kHelp, kVersion };

struct Arguments {
  Verb verb = Verb::kHelp;
  Verb about = Verb::kHelp;          // of kHelp: the verb it is about; kHelp: all of them
  std::string socket{};              // --socket
  std::string text{};                // ask: what; show, cancel: the id
  std::vector<std::string> files{};  // --file
  bool javascript = false;           // --js
  bool json = false;                 // --json
  std::string save{};                // --save
  std::string image = "auto";        // --image
  int limit = 20;                    // history --limit
};

// `words` without the program's own name. kInvalid for a spelling that does not exist, with the
// fix.
[[nodiscard]] sbx::Result<Arguments> parse_arguments(const std::vector<std::string>& words);
// The page of a verb; of kHelp the whole.
[[nodiscard]] std::string help_text(Verb about = Verb::kHelp);

}  // namespace agentd::cli
