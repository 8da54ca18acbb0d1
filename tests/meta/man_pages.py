#!/usr/bin/env python3
"""A manual page names the options that its program has, and no others.

Usage: man_pages.py PROGRAM PAGE...   (pairs)
"""
import re
import subprocess
import sys

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


def options(text):
    return set(OPTION.findall(text))


def main():
    arguments = sys.argv[1:]
    if options(r"a --b-c --de=x ---f g--h") != {"--b-c", "--de"} or len(arguments) % 2:
        sys.exit("man_pages: the check itself is broken, or wrongly used")
    for program, page in zip(arguments[::2], arguments[1::2]):
        with open(page, encoding="utf-8") as file:
            described = options(re.sub(r"\\f[A-Z]", "", file.read()).replace("\\-", "-"))
        shown = subprocess.run([program, "--help"], check=True, capture_output=True, text=True)
        # The example of a man page may use another program.
        described -= {"--unix-socket"}
        had = options(shown.stdout) - {"--unix-socket"}
        if described != had:
            sys.exit(f"{page} lacks {sorted(had - described)} and has {sorted(described - had)} "
                     "in vain")
        print(f"{page}: {len(had)} options")


if __name__ == "__main__":
    main()
