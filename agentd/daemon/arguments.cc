#include "agentd/daemon/arguments.h"

#include <string_view>

#include "runtime/base/command_words.h"

namespace agentd::daemon {
namespace {

constexpr const char* kSeeHelp = "agentd --help shows what there is";

sbx::Result<void> take_verb(Arguments& arguments, const std::vector<std::string>& words) {
  if (words.size() != 1 || words[0] != "record") {
    return sbx::invalid("unknown word: " + words.back(), kSeeHelp);
  }
  if (arguments.verb == Verb::kHelp || arguments.verb == Verb::kVersion) return {};
  if (arguments.verb != Verb::kServe) {
    return sbx::invalid("record is given with an option that does something else", kSeeHelp);
  }
  arguments.verb = Verb::kRecord;
  return {};
}

sbx::Result<void> check(const Arguments& arguments) {
  if (arguments.verb == Verb::kRecord && arguments.out.empty()) {
    return sbx::invalid("record needs --out FILE", kSeeHelp);
  }
  if (arguments.verb == Verb::kServe && !arguments.out.empty()) {
    return sbx::invalid("--out is for agentd record", kSeeHelp);
  }
  return {};
}

}  // namespace

sbx::Result<Arguments> parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  const sbx::CommandOption options[] = {{"--config", &arguments.config},
                                        {"--socket", &arguments.socket, true},
                                        {"--sbxd-socket", &arguments.sbxd_socket, true},
                                        {"--state-dir", &arguments.state_dir, true},
                                        {"--listen", &arguments.listen},
                                        {"--out", &arguments.out}};
  SBX_ASSIGN(const sbx::CommandWords taken,
             sbx::take_apart(words, sbx::kDaemonFlags, options, kSeeHelp));
  arguments.verb = sbx::daemon_verb<Verb>(taken.flag);
  if (!taken.plain.empty()) SBX_TRY(take_verb(arguments, taken.plain));
  SBX_TRY(check(arguments));
  return arguments;
}

std::string help_text() {
  return R"help(agentd: turns a request in plain words into a program, runs it in the sandbox of sbxd,
repairs it, and tells what came of it.

  agentd [--socket PATH] [--sbxd-socket PATH] [--state-dir DIR] [--config FILE]
         [--listen ADDRESS:PORT]
  agentd record --out FILE [the same]     serves, and appends each reply of the model to FILE
  agentd --check-config [--config FILE]   exit 0 when agentd.toml is right, and its key is there
  agentd --print-config                   every key of agentd.toml with its default

Runs in the foreground, needs no root and no capability, and logs JSON lines on stderr.
sbxd may be started before or after it. Without a key, a local model server or a
configuration it answers from the recordings of the demo, and says so on its first line.
SIGTERM lets requests end, for `drain_seconds`, then cancels them; a second one cancels them
at once, and waits two seconds for those who read their answers.

  --socket PATH        where to listen; default /run/agentd/agentd.sock (root), else
                       $XDG_RUNTIME_DIR/sbx/agentd.sock; systemd may pass one instead
  --sbxd-socket PATH   where sbxd listens; default SBX_SOCKET, /run/sbx/sbxd.sock,
                       $XDG_RUNTIME_DIR/sbx/sbxd.sock
  --state-dir DIR      ledger, history, artifacts; default /var/lib/agentd (root), else
                       $XDG_STATE_HOME/agentd
  --config FILE        default /etc/sbx/agentd.toml, else $XDG_CONFIG_HOME/sbx/agentd.toml
  --listen ADDRESS:PORT  TCP on this machine as well; prints a URL with the start token
  --version, --help

  agentctl ask "plot the distribution of price" --file houses.csv

Exit codes: 0 after SIGTERM; 1 the host failed; 2 wrong use, or a mistake in the configuration.
)help";
}

}  // namespace agentd::daemon
