// What the caller typed, taken apart and not yet judged. Stage: edge (sbx-run).
//
// Knows spellings only: no file is opened, no profile loaded, no limit parsed here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace sbx::cli {

enum class Verb { kRun, kDoctor, kSelftest, kExplain, kHelp, kVersion, kPrintConfig };

// Where the program comes from.
enum class Source {
  kNone,           // nothing was named
  kFile,           // FILE [ARGS…]
  kCode,           // -c CODE [ARGS…]
  kStandardInput,  // "-", or no FILE and a pipe
  kCommand,        // -- CMD [ARGS…]
};

struct Arguments {
  Verb verb = Verb::kRun;
  Verb about = Verb::kRun;  // kHelp: the verb that was asked about

  Source source = Source::kNone;
  std::string program;            // kFile: the path; kCode: the text
  std::vector<std::string> args;  // verbatim; kCommand: the whole command

  std::string language;                                     // empty: guessed
  std::vector<std::pair<std::string, std::string>> limits;  // {limit name, text}, as typed
  std::vector<std::string> inputs;                          // PATH[:NAME]
  std::vector<std::string> env;                             // K=V
  std::optional<std::string> output_dir;
  std::optional<std::string> stdin_file;
  std::string profile = "default";
  std::string rootfs = "default";
  std::vector<std::string> allow_missing;
  bool json = false;
  bool learn = false;

  bool operator==(const Arguments&) const = default;
};

// `words` without the program's own name. A verb is one only where FILE could stand; options may
// come before or after it, none after FILE, CODE, "-" or "--". kInvalid for a spelling that does
// not exist, with the fix.
[[nodiscard]] Result<Arguments> parse_arguments(const std::vector<std::string>& words);

// How a limit's name (contract.md) is spelled here, the long way; the name itself when it has no
// option.
[[nodiscard]] std::string_view limit_option(std::string_view limit);

// The page of one verb; kRun has the whole program's.
[[nodiscard]] std::string help_text(Verb about = Verb::kRun);
[[nodiscard]] std::string version_text();

}  // namespace sbx::cli
