#include "runtime/daemon/arguments.h"

#include <algorithm>

namespace sbx::daemon {
namespace {

constexpr const char* kSeeHelp = "sbxd --help shows what there is";

struct PathOption {
  std::string_view name;
  std::string Arguments::* member;
};
constexpr PathOption kPaths[] = {{"--config", &Arguments::config},
                                 {"--socket", &Arguments::socket},
                                 {"--state-dir", &Arguments::state_dir}};

struct Flag {
  std::string_view name;
  Verb verb;
};
constexpr Flag kFlags[] = {{"--check-config", Verb::kCheckConfig},
                           {"--print-config", Verb::kPrintConfig},
                           {"--help", Verb::kHelp},
                           {"-h", Verb::kHelp},
                           {"--version", Verb::kVersion}};

Result<void> set_path(Arguments& arguments, const PathOption& option, const std::string& value) {
  if (value.empty()) return invalid(std::string(option.name) + " needs a path", kSeeHelp);
  if (!(arguments.*option.member).empty()) {
    return invalid(std::string(option.name) + " is given twice", "give it once");
  }
  const bool absolute = value.front() == '/' || option.member == &Arguments::config;
  if (!absolute) {
    return invalid(std::string(option.name) + " " + value + " is not an absolute path");
  }
  arguments.*option.member = value;
  return {};
}

// "audit verify [FILE]", the only words that are no options. A page of it needs no more than the
// first.
Result<void> take_audit(Arguments& arguments, const std::vector<std::string>& words) {
  if (arguments.verb == Verb::kVersion) return {};
  if (arguments.verb == Verb::kHelp && words[0] == "audit") {
    arguments.verb = Verb::kAuditHelp;
    return {};
  }
  if (words.size() < 2 || words[0] != "audit" || words[1] != "verify" || words.size() > 3) {
    return invalid("unknown words: " + words[0] + (words.size() > 1 ? " " + words[1] : ""),
                   "the only verb is: sbxd audit verify [FILE]");
  }
  if (arguments.verb != Verb::kServe) {
    return invalid("audit verify is given with an option that does something else", kSeeHelp);
  }
  arguments.verb = Verb::kAuditVerify;
  if (words.size() == 3) arguments.audit_file = words[2];
  return {};
}

bool only_tells(Verb verb) {
  return verb == Verb::kHelp || verb == Verb::kVersion;
}

Result<void> take_flag(Arguments& arguments, const Flag& flag) {
  if (only_tells(arguments.verb)) return {};  // the first of them
  if (arguments.verb != Verb::kServe && arguments.verb != flag.verb && !only_tells(flag.verb)) {
    return invalid("--check-config and --print-config are two things to do", "give one of them");
  }
  arguments.verb = flag.verb;
  return {};
}

}  // namespace

Result<Arguments> parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  std::vector<std::string> plain;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-')) {
      plain.push_back(word);
      continue;
    }
    const std::string name = word.substr(0, word.find('='));
    const auto* flag = std::find_if(std::begin(kFlags), std::end(kFlags),
                                    [&](const Flag& each) { return each.name == word; });
    const auto* path = std::find_if(std::begin(kPaths), std::end(kPaths),
                                    [&](const PathOption& each) { return each.name == name; });
    if (flag != std::end(kFlags)) {
      SBX_TRY(take_flag(arguments, *flag));
    } else if (path == std::end(kPaths)) {
      return invalid("unknown option " + name, kSeeHelp);
    } else if (name.size() < word.size()) {
      SBX_TRY(set_path(arguments, *path, word.substr(name.size() + 1)));
    } else {
      SBX_TRY(set_path(arguments, *path, i + 1 < words.size() ? words[++i] : std::string()));
    }
  }
  if (!plain.empty()) SBX_TRY(take_audit(arguments, plain));
  return arguments;
}

std::string help_text() {
  return R"help(sbxd: runs code that nobody has read, for clients of a Unix socket.

  sbxd [--socket PATH] [--state-dir DIR] [--config FILE]
  sbxd --check-config [--config FILE]     exit 0 when sbxd.toml and runtime.toml are right
  sbxd --print-config                     every key of sbxd.toml with its default
  sbxd audit verify [FILE]                exit 1 when lines were edited, removed or reordered

Runs in the foreground and logs JSON lines on stderr. Started by root it becomes the user
`sbx` (sbxd.toml: user) before it reads a byte of a client; started by an ordinary user it
stays who he is. SIGTERM lets runs end, for `drain_seconds`, then cancels them; a second
one cancels them at once, and waits a second for those who read their answers.

  --socket PATH      where to listen; default /run/sbx/sbxd.sock (root), else
                     $XDG_RUNTIME_DIR/sbx/sbxd.sock; systemd may pass one instead
  --state-dir DIR    sessions and the audit file; default /var/lib/sbx (root), else
                     $XDG_STATE_HOME/sbx
  --config FILE      default /etc/sbx/sbxd.toml, else $XDG_CONFIG_HOME/sbx/sbxd.toml
  --version, --help

  curl --unix-socket PATH http://sbx/v1/run -d '{"language":"python","code":"print(6*7)"}'

Exit codes: 0 after SIGTERM; 1 the sandbox or the host failed, or the audit file is not intact;
2 wrong use, or a mistake in a configuration file.
)help";
}

std::string audit_help_text() {
  return R"help(sbxd audit verify [FILE] [--state-dir DIR] [--config FILE]

Checks the audit file, a chain of lines that each hold the hash of the one before, against
itself and FILE.head, which knows the last. Says each line that was edited, removed,
inserted or moved. Without FILE: audit/audit.jsonl of the state directory.

Exit codes: 0 intact; 1 not, or it cannot be read; 2 wrong use.
)help";
}

}  // namespace sbx::daemon
