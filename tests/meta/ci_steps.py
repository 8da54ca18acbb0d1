#!/usr/bin/env python3
"""Usage: ci_steps.py SOURCE

Runs .ci/run in a tree of stand-ins: a step fails when any of its commands does, not its last alone, and
with it the whole; later steps run all the same, but none after set-up has failed.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

PASSED = "100% tests passed, 0 tests failed out of 2"
FAILED = "50% tests passed, 1 tests failed out of 2"
SKIPPED = "\t  6 - some_test (Skipped)"


def outcome(source, scripts, *steps):
    """The exit code and output of .ci/run, where each of `scripts` is a shell program's text."""
    with tempfile.TemporaryDirectory() as directory:
        tree = pathlib.Path(directory)
        for name in (".ci", "scripts", "tests"):
            (tree / name).mkdir()
        shutil.copy(source / ".ci/run", tree / ".ci/run")
        (tree / "tests/allowed-skips.txt").write_text("allowed_test  a reason\n")
        usual = {"install-deps": "", "build": "", "image": "", "lint": "", "test": f"echo '{PASSED}'"}
        for name, text in {**usual, **scripts}.items():
            path = tree / "scripts" / name
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        done = subprocess.run([tree / ".ci/run", *steps], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def main():
    source = pathlib.Path(sys.argv[1])
    problems = []

    def expect(what, scripts, steps, code, *texts):
        seen, output = outcome(source, scripts, *steps)
        if seen != code or any(text not in output for text in texts):
            problems.append(f"{what}: exit {seen}, wanted {code} and {texts}\n{output}")

    expect("control: all pass", {}, ["set-up", "format", "tests"], 0, PASSED)
    expect("a failed test", {"test": f"echo '{FAILED}'; exit 8"}, ["tests", "format"], 1,
           "tests        FAILED (exit 8)", "format       ok", FAILED)
    expect("a skipped test", {"test": f"echo '{SKIPPED}'"}, ["tests"], 1, "skipped, but required: some_test")
    expect("a failed command before the last", {"install-deps": "exit 3"}, ["set-up", "format"], 1,
           "set-up       FAILED (exit 3)")
    _, output = outcome(source, {"install-deps": "exit 3"}, "set-up", "format")
    if "===== format" in output:
        problems.append("a step ran after set-up had failed")
    for problem in problems:
        print(f"ci_steps: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
