#!/usr/bin/env python3
"""<sbx/sandbox.h> is one self-contained header without anything heavy.

Usage: public_header.py --compiler CXX --header FILE
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<][^">]+[">])', re.MULTILINE)
# Besides the C++ standard library (names without a dot): these of POSIX, and no more.
POSIX = {"poll.h", "unistd.h", "sys/types.h"}
USE = """#include <sbx/sandbox.h>
#include <sbx/sandbox.h>
int NAME(sbx::Sandbox& sandbox) {
  const auto outcome = sandbox.run({.language = "python", .code = "print(6 * 7)"});
  return outcome && outcome->ok() ? sbx::collect::process_exit_code(*outcome) : 1;
}
"""


def includes_complaints(text):
    """Includes that a user's machine or patience may not have."""
    found = []
    for target in INCLUDE.findall(text):
        name = target[1:-1]
        if target[0] == '"':
            found.append(f"includes {target}: not self-contained")
        elif "." in name and name not in POSIX or "/" in name and name not in POSIX:
            found.append(f"includes {target}: heavy, or not everywhere")
    if text.count("#pragma once") != 1:
        found.append("has not exactly one #pragma once")
    return found


def control():
    bad = ['#pragma once\n#include "runtime/base/result.h"', "#pragma once\n#include <fmt/format.h>",
           "#pragma once\n#include <seccomp.h>", "#pragma once\n#include <boost/asio>", ""]
    missed = [text for text in bad if not includes_complaints(text)]
    wrong = includes_complaints("#pragma once\n#include <string>\n#include <poll.h>\n")
    if missed or wrong:
        sys.exit(f"public_header: the check itself is broken: missed {missed}, found {wrong}")


def compile_complaints(compiler, header):
    """Compiles two files that use the header alone, strictly, and joins them: what it defines must
    be allowed to be there twice."""
    include = os.path.dirname(os.path.dirname(header))
    with tempfile.TemporaryDirectory(prefix="test-sbx-header-") as directory:
        objects = []
        for name in ("first", "second"):
            source = os.path.join(directory, name + ".cc")
            objects.append(os.path.join(directory, name + ".o"))
            with open(source, "w", encoding="utf-8") as file:
                file.write(USE.replace("NAME", name))
            done = subprocess.run(
                [compiler, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror",
                 "-Wno-missing-field-initializers", "-I", include, "-c", source, "-o", objects[-1]],
                capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return [f"does not compile by itself:\n{done.stderr}"]
        joined = subprocess.run([compiler, "-nostdlib", "-r", *objects, "-o",
                                 os.path.join(directory, "both.o")],
                                capture_output=True, text=True, check=False)
        return [] if joined.returncode == 0 else [f"cannot be used twice:\n{joined.stderr}"]


def main():
    parser = argparse.ArgumentParser()
    for option in ("--compiler", "--header"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    control()
    with open(options.header, encoding="utf-8") as file:
        text = file.read()
    found = includes_complaints(text) + compile_complaints(options.compiler, options.header)
    print("\n".join(found) if found else f"{text.count(chr(10))} lines, self-contained")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
