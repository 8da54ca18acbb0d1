#!/usr/bin/env python3
"""What a client may branch on is written down: the codes of notes, the names in limits_hit, the codes of a
result's error, the members of problems and the values of `budget` are those of the OpenAPI document, no
other and none in vain, and docs/api.md names each of them and each code of a problem.

Usage: result_names.py SOURCE_DIRECTORY
"""
import json
import pathlib
import re
import sys

STORAGE = ("tmp", "output", "work", "shm")  # of supervise::StorageState


def all_of(pattern, text):
    return set(re.findall(pattern, text))


def body_of(text, head):
    """Of the function whose definition begins with `head`."""
    start = text.index(head)
    return text[start:text.index("\n}\n", start)]


def note_codes(text):
    return all_of(r'\badd\(\s*"([a-z_]+)"', text)


def limit_names(verdict, collection):
    names = all_of(r'add_if\([^;]*?,\s*"([a-z_]+)"\);', body_of(verdict, "limits_reached("))
    names |= all_of(r'return "([a-z_]+)";', body_of(collection, "limit_of("))
    return names | {name + end for name in STORAGE for end in ("", "_inodes")}


def members(text):
    found = all_of(r'document\["([a-z_]+)"\]', text)
    for more in re.findall(r"\.more = \{(\{.*?\})\}", text, re.DOTALL):
        found |= all_of(r'\{"([a-z_]+)",', more)
    return found


def check_itself():
    notes = note_codes('add("a", x); add(\n  "b_c",\n y); padd("d")')
    limits = limit_names('limits_reached() {\n  add_if(x, "a");\n  add_if(y > 0,\n "b");\n}\n',
                         'limit_of() {\n  return "c";\n}\n return "d";')
    problem = members('document["a"] = 1; .more = {{"b", x},\n {"c", y(z)}}};')
    if notes != {"a", "b_c"} or not {"a", "b", "c", "tmp_inodes"} <= limits or "d" in limits:
        sys.exit(f"result_names: the check itself is broken: {notes} {limits}")
    if problem != {"a", "b", "c"}:
        sys.exit(f"result_names: the check itself is broken: {problem}")


def main():
    check_itself()
    root = pathlib.Path(sys.argv[1])

    def text(path):
        return (root / path).read_text()

    schemas = json.loads(text("runtime/daemon/openapi.json"))["components"]["schemas"]
    result, problem = schemas["Result"]["properties"], schemas["Problem"]["properties"]
    verdict = text("runtime/collect/verdict.cc")
    daemon = "".join(path.read_text() for path in sorted((root / "runtime/daemon").glob("*.cc")))
    budgets = all_of(r'return "([a-z_]+)";', body_of(text("runtime/daemon/admission.cc"), "budget_name("))
    budgets |= all_of(r'"(sessions\.max\w*)"', text("runtime/daemon/sessions.cc"))
    budgets |= all_of(r'\{"budget",\s*"([a-z_.]+)"\}', daemon)
    names = {
        "notes' codes": (note_codes(text("runtime/collect/notes.cc")),
                         result["notes"]["items"]["properties"]["code"]["enum"]),
        "limits_hit": (limit_names(verdict, text("runtime/collect/collection.cc")),
                       result["limits_hit"]["items"]["enum"]),
        "codes of error": (all_of(r'info\.code = "([a-z_]+)"', verdict),
                           result["error"]["oneOf"][1]["properties"]["code"]["enum"]),
        "members of problems": (members(text("http/problem.cc") + daemon), list(problem)),
        "budgets": (budgets, problem["budget"]["enum"]),
    }
    page = text("docs/api.md").split("\n## agentd\n")[0]
    told = {word for span in re.findall(r"`([^`]+)`", page) for word in span.split()}
    wrong = [f"problem code {code}: not in docs/api.md"
             for code in sorted(set(problem["code"]["enum"]) - told)]
    for what, (emitted, listed) in names.items():
        if not emitted:
            sys.exit(f"result_names: found no {what}: where they are written has changed")
        wrong += [f"{what}: {name} is not in openapi.json" for name in sorted(emitted - set(listed))]
        wrong += [f"{what}: {name} is in openapi.json in vain" for name in sorted(set(listed) - emitted)]
        wrong += [f"{what}: {name} is not in docs/api.md" for name in sorted(set(listed) - told)]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{sum(len(listed) for _, listed in names.values())} names, all listed")


if __name__ == "__main__":
    main()
