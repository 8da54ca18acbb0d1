// The text of --help. One screen.
#include "runtime/cli/arguments.h"

namespace sbx::cli {

std::string help_text() {
  return R"(sbx-run: run code that nobody has read, in a box without network or host files.

  sbx-run [OPTIONS] FILE [ARGS...]        a script; the language is guessed from its name
  sbx-run [OPTIONS] -c CODE [ARGS...]     code as text (Python unless -l is given)
  sbx-run [OPTIONS] - [ARGS...]           code from standard input; also when it is a pipe
  sbx-run [OPTIONS] -- CMD [ARGS...]      any program of the rootfs
  sbx-run doctor [--json]                 what this host can enforce, and the fix for what it can't
  sbx-run selftest [--json]               attack this host's own sandbox, and score it
  sbx-run explain [OPTIONS] [PROGRAM]     what would be done, in words, without running

Words after FILE, CODE or CMD go to the program as they are. To run a file named like
a verb: sbx-run ./doctor

Program
  -l, --language NAME     python, javascript (node, js), bash (sh)
  --input PATH[:NAME]     a regular file, given as /input/NAME (repeatable)
  --output-dir DIR        save what the program leaves in /output, under names of its choice,
                          over files that are there: use a directory of its own
  --env K=V               add an environment variable (repeatable)
  --stdin FILE            the program's standard input
  --json                  print the result as one JSON document, and nothing else
  --learn                 print which system calls were denied, and the profile allowing them

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
do its work, 2 wrong use.
)";
}

std::string version_text() {
  return std::string("sbx-run ") + SBX_VERSION + "\n";
}

}  // namespace sbx::cli
