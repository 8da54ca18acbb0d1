"""How a benchmark ends before its work is done: one line on stderr, and an exit code as its help names them."""

import pathlib
import sys

WRONG_USE, OURS = 2, 3


def stop(code, why):
    print(f"{pathlib.Path(sys.argv[0]).name}: {why}", file=sys.stderr)
    raise SystemExit(code)
