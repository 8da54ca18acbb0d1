#include "runtime/daemon/arguments.h"

#include "runtime/base/command_words.h"

namespace sbx::daemon {
namespace {

constexpr const char* kSeeHelp = "sbxd --help shows what there is";

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

}  // namespace

Result<Arguments> parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  const CommandOption options[] = {{"--config", &arguments.config},
                                   {"--socket", &arguments.socket, true},
                                   {"--state-dir", &arguments.state_dir, true}};
  SBX_ASSIGN(const CommandWords taken, take_apart(words, kDaemonFlags, options, kSeeHelp));
  arguments.verb = daemon_verb<Verb>(taken.flag);
  if (!taken.plain.empty()) SBX_TRY(take_audit(arguments, taken.plain));
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
