// The texts of --help, one screen each.
#include "runtime/cli/arguments.h"

namespace sbx::cli {
namespace {

constexpr const char* kProgram =
    R"(sbx-run: run code that nobody has read, in a box without network or host files.

  sbx-run [OPTIONS] FILE [ARGS...]        a script; the language is guessed from its name
  sbx-run [OPTIONS] -c CODE [ARGS...]     code as text (Python unless -l is given)
  sbx-run [OPTIONS] - [ARGS...]           code from standard input; also when it is a pipe
  sbx-run [OPTIONS] -- CMD [ARGS...]      any program of the rootfs
  sbx-run doctor [--json]                 what this host can enforce, and the fix for what it can't
  sbx-run selftest [--json]               attack this host's own sandbox, and score it
  sbx-run explain [OPTIONS] [PROGRAM]     what would be done, in words, without running

Each of the last three has a page of its own: sbx-run doctor --help
Options come first: all words after FILE, CODE, - or CMD go to the program as they are.
To run a file named like a verb: sbx-run ./doctor

Program
  -l, --language NAME     python, javascript (node, js), bash (sh)
  --input PATH[:NAME]     a regular file, given as /input/NAME (repeatable)
  --output-dir DIR        save what the program leaves in /output, under names of its choice,
                          over files that are there: use a directory of its own
  --env K=V               add an environment variable (repeatable)
  --stdin FILE            the program's standard input
  --json                  print the result as one JSON document, and nothing else
  --learn                 print which system calls were denied, and the run's profile allowing
                          those that are safe to allow too

Limits (sizes take K, M, G)
  -t, --timeout SECONDS   wall clock, 30           --memory SIZE    256M
  --cpu-time SECONDS      CPU time, none           --pids N         64
  --cpus N                0.5

Isolation
  --profile NAME|FILE     default
  --rootfs NAME|host      an image, or the host's /usr read-only
  --net none|host         host: no network isolation, and the result says so
  --allow-missing LAYER   run although a required layer cannot be had (repeatable)

  --print-config          every key of runtime.toml with its default
  --version, --help

Exit codes: the program's own; 128+n for a signal of its own; 124 timeout or CPU time,
137 memory, 159 hostile system call, 123 output, 130 cancelled, 125 the sandbox could not
do its work or save what came out, 2 wrong use.
)";

constexpr const char* kDoctor =
    R"(sbx-run doctor: what this host can enforce, and the fix for what it cannot.

  sbx-run doctor [--json] [--rootfs NAME|host]

Tries each facility that a run needs, as the caller, and leaves nothing behind. In the image it
looks for the interpreters, and for any file or directory that others may write, which a run does
not. One line a facility:
  ok         it works
  degraded   it works in part; the line says what is lost
  missing    it cannot be had
  untried    no process or no memory was left to try it
and one line of fix for what is not ok. Without a required one runs are refused, unless
--allow-missing names its layer; the others are marked (optional).

  --json                  the same as one JSON document
  --rootfs NAME|host      the image to look for: default

Exit codes: 0 no required facility is missing, degraded or untried, 1 one is, 2 wrong use.
)";

constexpr const char* kSelftest = R"(sbx-run selftest: attack this host's own sandbox, and score it.

  sbx-run selftest [OPTIONS]

Makes each attack inside a sandbox, and again as a control where that harms nothing: outside it, or
with the limit raised. An attack that fails there too shows nothing about the sandbox. Attacks by
system calls, views, network and setting up are judged by what the kernel answered; those on files
out, killing and memory by what came of the run. Takes well under a minute. One line an attack:
  pass            stopped inside, and possible without the sandbox
  FAIL            it got through, or did not come to an answer; the line says which
  n.a.            this host cannot show it; the line says why
  control failed  it did not work without the sandbox either: never a pass

  --json                  the same as one JSON document
  --rootfs NAME|host      the image to attack from: default
  --profile NAME|FILE     the profile to attack: default
  --allow-missing LAYER   attack although a required layer cannot be had (repeatable); what it
                          would stop fails

Exit codes: 0 nothing failed, 1 an attack or a control did, 125 there was no sandbox to attack,
130 cancelled, 2 wrong use. Cancelled by a signal (SIGINT, SIGTERM, SIGHUP, SIGQUIT) it removes what
it made; what a SIGKILL leaves, the next selftest removes.
)";

constexpr const char* kExplain =
    R"(sbx-run explain: what would be done, in words. The host is tried, the program is not run.

  sbx-run explain [OPTIONS] [FILE [ARGS...] | -c CODE [ARGS...] | - | -- CMD [ARGS...]]

Takes the options (but --json and --learn) and the program of a run, as they would be typed for it
(sbx-run --help), and prints the plan: program, environment, identity, files, network, limits,
system calls, layers with what each would lack here, and the steps in their order. Without a
program: the plan of an empty one.

Exit codes: 0 there is a plan, 125 the run would be refused, with the fix, 2 wrong use. What only
a run can tell is not looked at: 'sbx-run doctor' makes one.
)";

}  // namespace

std::string help_text(Verb about) {
  switch (about) {
    case Verb::kDoctor:
      return kDoctor;
    case Verb::kSelftest:
      return kSelftest;
    case Verb::kExplain:
      return kExplain;
    default:
      return kProgram;
  }
}

std::string version_text() {
  return std::string("sbx-run ") + SBX_VERSION + "\n";
}

}  // namespace sbx::cli
