#!/usr/bin/env python3
"""Makes one self-contained header of a header of ours and everything of ours that it includes.

Usage: amalgamate.py --root DIRECTORY --entry runtime/sandbox.h --out FILE [--depfile FILE]

Includes of ours ("runtime/…", named from the root) are put in place, each once; the others (<…>) are
gathered at the top. The order of definitions is that of a compiler that follows the includes.
"""
import argparse
import itertools
import pathlib
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ONCE = re.compile(r"^\s*#\s*pragma\s+once")


class Amalgamation:
    def __init__(self, root):
        self.root = root
        self.seen = []       # files of ours, in the order in which they were put in place
        self.others = set()  # <…>
        self.body = []

    def lines_of(self, name):
        return (self.root / name).read_text(encoding="utf-8").splitlines()

    def add(self, name, lines=None):
        if name in self.seen:
            return
        self.seen.append(name)
        own = []
        for line in self.lines_of(name) if lines is None else lines:
            include = INCLUDE.match(line)
            if include and include[1] == '"':
                self.add(include[2])
            elif include:
                self.others.add(include[2])
            elif not ONCE.match(line):
                own.append(line)
        self.body.append(f"// ---- {name}")
        self.body += own

    def text(self, entry):
        lines = self.lines_of(entry)
        # What the entry says of itself is the manual's first page.
        manual = list(itertools.takewhile(lambda line: line.startswith("//"), lines))
        self.add(entry, lines[len(manual):])
        # C++ headers have no dot; C and system headers come first.
        system = [f"#include <{name}>" for name in sorted(self.others) if "." in name]
        standard = [f"#include <{name}>" for name in sorted(self.others) if "." not in name]
        head = [*manual, "//", f"// Made of {entry} and what it includes: do not edit.", "#pragma once", "",
                *system, "", *standard, "", *self.body]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(head)) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--entry", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--depfile", type=pathlib.Path)
    options = parser.parse_args()
    amalgamation = Amalgamation(options.root)
    text = amalgamation.text(options.entry)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    if options.depfile:
        inputs = " ".join(str(options.root / name).replace(" ", "\\ ") for name in amalgamation.seen)
        options.depfile.write_text(f"{options.out}: {inputs}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
