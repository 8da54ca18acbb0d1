#include "agentd/daemon/arguments.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace agentd::daemon {
namespace {

constexpr const char* kSeeHelp = "agentd --help shows what there is";

struct Option {
  std::string_view name;
  std::string Arguments::* member;
  bool absolute;  // must be an absolute path
};
constexpr std::array kOptions = {Option{"--config", &Arguments::config, false},
                                 Option{"--socket", &Arguments::socket, true},
                                 Option{"--sbxd-socket", &Arguments::sbxd_socket, true},
                                 Option{"--state-dir", &Arguments::state_dir, true},
                                 Option{"--listen", &Arguments::listen, false},
                                 Option{"--out", &Arguments::out, false}};

struct Flag {
  std::string_view name;
  Verb verb;
};
constexpr std::array kFlags = {
    Flag{"--check-config", Verb::kCheckConfig}, Flag{"--print-config", Verb::kPrintConfig},
    Flag{"--help", Verb::kHelp}, Flag{"-h", Verb::kHelp}, Flag{"--version", Verb::kVersion}};

sbx::Result<void> set(Arguments& arguments, const Option& option, const std::string& value) {
  const std::string name(option.name);
  if (value.empty()) return sbx::invalid(name + " needs a value", kSeeHelp);
  if (!(arguments.*option.member).empty()) {
    return sbx::invalid(name + " is given twice", "give it once");
  }
  if (option.absolute && value.front() != '/') {
    return sbx::invalid(name + " " + value + " is not an absolute path");
  }
  arguments.*option.member = value;
  return {};
}

sbx::Result<void> take_verb(Arguments& arguments, const std::vector<std::string>& words) {
  if (words.size() != 1 || words[0] != "record") {
    return sbx::invalid("unknown word: " + words.back(), kSeeHelp);
  }
  if (arguments.verb == Verb::kServe) arguments.verb = Verb::kRecord;
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
  std::vector<std::string> plain;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-')) {
      plain.push_back(word);
      continue;
    }
    const std::string name = word.substr(0, word.find('='));
    const auto* flag = std::find_if(kFlags.begin(), kFlags.end(),
                                    [&](const Flag& each) { return each.name == word; });
    const auto* option = std::find_if(kOptions.begin(), kOptions.end(),
                                      [&](const Option& each) { return each.name == name; });
    if (flag != kFlags.end()) {
      arguments.verb = flag->verb;
    } else if (option == kOptions.end()) {
      return sbx::invalid("unknown option " + name, kSeeHelp);
    } else if (name.size() < word.size()) {
      SBX_TRY(set(arguments, *option, word.substr(name.size() + 1)));
    } else {
      SBX_TRY(set(arguments, *option, i + 1 < words.size() ? words[++i] : std::string()));
    }
  }
  if (!plain.empty()) SBX_TRY(take_verb(arguments, plain));
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
