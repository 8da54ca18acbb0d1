#!/usr/bin/env python3
"""The codes of problems are those that each daemon's OpenAPI document lists: no other, and none in vain. It describes
every member that a problem may have, too, and docs/api.md names the codes.

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
]
# The sources that a document is of.
DOCUMENTS = {"runtime/daemon/openapi.json": ("http", "runtime/daemon"),
             "agentd/api/openapi.json": ("http", "agentd/api", "agentd/service")}
MEMBER = re.compile(r'\bdocument\["([a-z_]+)"\]')   # of http/problem.cc


def written(text):
    return {code for pattern in WRITTEN for code in pattern.findall(text)}


def codes_in(root, folders):
    return set().union(*(written(path.read_text()) for folder in folders for path in (root / folder).rglob("*")
                         if path.suffix in (".h", ".cc")))


def check(root, document, folders, members):
    """How many codes there are; ends where the document differs."""
    found = codes_in(root, folders)
    problem = json.loads((root / document).read_text())["components"]["schemas"]["Problem"]["properties"]
    listed = set(problem["code"]["enum"])
    if found != listed:
        sys.exit(f"{document} lacks {sorted(found - listed)}, and lists in vain {sorted(listed - found)}")
    if not members <= set(problem):
        sys.exit(f"{document} lacks the members {sorted(members - set(problem))}")
    told = set(re.findall(r"[a-z_]+", (root / "docs/api.md").read_text()))
    if not found <= told:
        sys.exit(f"docs/api.md lacks {sorted(found - told)} of {document}")
    return len(found)


def main():
    sample = ('{.status = 400,\n .code = "a_b"}; .code = host ? "c" : kD; conflict("e", "x"); '
              'inline constexpr char kF[] = "f";  // 404')
    if written(sample) != {"a_b", "c", "e", "f"}:
        sys.exit(f"problem_codes: the check itself is broken: {written(sample)}")
    root = pathlib.Path(sys.argv[1])
    members = set(MEMBER.findall((root / "http/problem.cc").read_text()))
    if not {"code", "retry_after"} <= members:
        sys.exit(f"problem_codes: the check itself is broken: {sorted(members)}")
    counts = [check(root, document, folders, members) for document, folders in DOCUMENTS.items()]
    print(f"{' and '.join(map(str, counts))} codes, all listed")



if __name__ == "__main__":
    main()
