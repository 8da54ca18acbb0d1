#!/usr/bin/env python3
"""The codes of problems are those that the OpenAPI document lists: no other, and none in vain.

Usage: problem_codes.py SOURCE_DIRECTORY
"""
import json
import pathlib
import re
import sys

# Where codes are written: as a member, as an argument of a function that makes problems, as one of the
# named constants of the server and of the daemon.
WRITTEN = [
    re.compile(r'\.code\s*=\s*(?:\w+\s*\?\s*)?"([a-z_]+)"'),
    re.compile(r'\bconflict\(\s*"([a-z_]+)"'),
    re.compile(r'constexpr char k\w+\[\]\s*=\s*"([a-z_]+)";\s*//\s*\d{3}'),
    re.compile(r'constexpr const char\* kUnavailable\s*=\s*"([a-z_]+)"'),
]


def written(text):
    return {code for pattern in WRITTEN for code in pattern.findall(text)}


def main():
    sample = ('{.status = 400,\n .code = "a_b"}; .code = host ? "c" : kD; conflict("e", "x"); '
              'inline constexpr char kF[] = "f";  // 404\nconstexpr const char* kUnavailable = "g";')
    if written(sample) != {"a_b", "c", "e", "f", "g"}:
        sys.exit(f"problem_codes: the check itself is broken: {written(sample)}")
    root = pathlib.Path(sys.argv[1])
    sources = [path for folder in ("http", "runtime/daemon") for path in (root / folder).rglob("*")
               if path.suffix in (".h", ".cc")]
    found = set().union(*(written(path.read_text()) for path in sources))
    document = json.loads((root / "runtime/daemon/openapi.json").read_text())
    listed = set(document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"])
    if found != listed:
        sys.exit(f"openapi.json lacks {sorted(found - listed)}, and lists in vain "
                 f"{sorted(listed - found)}")
    print(f"{len(found)} codes, all listed")


if __name__ == "__main__":
    main()
