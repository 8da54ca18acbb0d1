// The words of a daemon's command line: --flag, --option VALUE, --option=VALUE, and plain words.
// Stage: base.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace sbx {

// Something to do instead of serving. One that only tells (--help, --version) may stand beside any
// other.
struct CommandFlag {
  std::string_view name;
  bool only_tells = false;
};

// What each daemon here can be asked to do instead of serving.
inline constexpr CommandFlag kDaemonFlags[] = {
    {"--check-config"}, {"--print-config"}, {"--help", true}, {"-h", true}, {"--version", true}};

struct CommandOption {
  std::string_view name;
  std::string* value;          // empty before; set when the option is given
  bool absolute_path = false;  // no other value is taken
};

struct CommandWords {
  std::string_view flag;  // of the known ones: the first that only tells, else the one given
  std::vector<std::string> plain;  // what is neither flag nor option, nor the value of one
};

// kInvalid for an unknown option, one without a value or given twice, and for two things to do.
// `see_help` is the fix of those that are of spelling.
[[nodiscard]] Result<CommandWords> take_apart(const std::vector<std::string>& words,
                                              std::span<const CommandFlag> flags,
                                              std::span<const CommandOption> options,
                                              const std::string& see_help);

// What the flag, one of kDaemonFlags or none, asks for, in a daemon's own names.
template <class Verb>
[[nodiscard]] Verb daemon_verb(std::string_view flag) {
  if (flag == "--check-config") return Verb::kCheckConfig;
  if (flag == "--print-config") return Verb::kPrintConfig;
  if (flag == "--version") return Verb::kVersion;
  return flag.empty() ? Verb::kServe : Verb::kHelp;
}

}  // namespace sbx
