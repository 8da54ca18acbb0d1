// What agentctl says of itself: the whole, and a page for each verb.
#include "agentd/cli/arguments.h"

namespace agentd::cli {
namespace {

constexpr const char* kWhole = R"help(agentctl: asks agentd, and shows what comes back.

  agentctl ask "TEXT" [--file F]… [--js] [--json] [--save DIR] [--image HOW]
  agentctl show ID    [--json] [--save DIR] [--image HOW]
  agentctl history    [--limit N] [--json]
  agentctl cancel ID
  agentctl doctor                       what works, and what to do about the rest

The result goes to stdout; states, attempts and the footer to stderr. Ctrl-C cancels.

  --file F       a file for the program, repeatable
  --js           a JavaScript program instead of Python
  --json         the whole record, and nothing else on stdout
  --save DIR     save every file of the result there, in directories as the program made
                 them; else what a chart or a file result names is saved in agentd-ID,
                 and with --json nothing
  --image HOW    auto, kitty, iterm2, sixel, none
  --socket PATH  default AGENTD_SOCKET, /run/agentd/agentd.sock,
                 $XDG_RUNTIME_DIR/sbx/agentd.sock
  --version      which release this is

agentctl VERB --help is a page on that verb.
Exit codes: 0 success; 1 gave up, or cancelled; 2 wrong use; 3 agentd or the sandbox failed.
)help";

constexpr const char* kAskPage =
    R"help(agentctl ask: has a program written for a request in words, run, and repaired where need be.

  agentctl ask "TEXT" [--file F]… [--js] [--json] [--save DIR] [--image HOW]

The result goes to stdout; states, attempts and the footer, which has the request's id, to stderr.
Ctrl-C cancels the request; a second one leaves it.

  --file F       a file for the program, repeatable: at most 10 MiB together, each of another name
  --js           a JavaScript program instead of Python
  --json         the whole record, and nothing else on stdout
  --save DIR     save every file of the result there, in directories as the program made
                 them; else what a chart or a file result names is saved in agentd-ID,
                 and with --json nothing
  --image HOW    auto, kitty, iterm2, sixel, none
  --socket PATH  where agentd listens

A text that begins with a dash follows two of them: agentctl ask -- "-5 + 3"
Exit codes: 0 success; 1 gave up, or cancelled; 2 wrong use; 3 agentd or the sandbox failed.
)help";

constexpr const char* kShowPage =
    R"help(agentctl show: the result of an earlier request, as ask showed it.

  agentctl show ID [--json] [--save DIR] [--image HOW]

  ID             of the request: agentctl history lists them
  --json         the whole record, and nothing else on stdout
  --save DIR     save every file of the result there, in directories as the program made
                 them; else what a chart or a file result names is saved in agentd-ID,
                 and with --json nothing
  --image HOW    auto, kitty, iterm2, sixel, none
  --socket PATH  where agentd listens

Exit codes: 0 it succeeded; 1 it gave up, or was cancelled; 2 no request has that id; 3 it failed, or
agentd did; 4 it is under way.
)help";

constexpr const char* kHistoryPage = R"help(agentctl history: your requests, newest first.

  agentctl history [--limit N] [--json]

A line for each: id, when it came (UTC), state, attempts, cost, text.

  --limit N      how many, 1 to 200; default 20
  --json         as agentd sends it
  --socket PATH  where agentd listens

Exit codes: 0 success; 2 wrong use; 3 agentd failed.
)help";

constexpr const char* kCancelPage = R"help(agentctl cancel: ends a request that is under way.

  agentctl cancel ID

  ID             of the request: agentctl history lists them
  --socket PATH  where agentd listens

Exit codes: 0 it is being cancelled; 2 no request has that id, or it has ended; 3 agentd failed.
)help";

constexpr const char* kDoctorPage =
    R"help(agentctl doctor: what works, and what to do about the rest.

  agentctl doctor

A line each for agentd, its sandbox (sbxd) and who writes the programs; a fix below what fails.

  --socket PATH  where agentd listens

Exit codes: 0 all is well; 3 something is not.
)help";

}  // namespace

std::string help_text(Verb about) {
  switch (about) {
    case Verb::kAsk:
      return kAskPage;
    case Verb::kShow:
      return kShowPage;
    case Verb::kHistory:
      return kHistoryPage;
    case Verb::kCancel:
      return kCancelPage;
    case Verb::kDoctor:
      return kDoctorPage;
    case Verb::kHelp:
    case Verb::kVersion:
      break;
  }
  return kWhole;
}

}  // namespace agentd::cli
