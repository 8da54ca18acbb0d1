"""The cases that the benchmarks ask: bench/*.jsonl and examples/requests.jsonl, one JSON object a line.

A case has an id, a category, the text, the target language, the attached files and what its result must be;
bench/README.md describes every field. Paths in the data are below the repository.
"""

import dataclasses
import hashlib
import json
import pathlib

import endings

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Case:
    id: str
    category: str
    text: str
    language: str
    files: dict          # {name: bytes}
    fields: dict         # the whole line, with "check", "second", …


def read_jsonl(path):
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def write_jsonl(path, objects):
    text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in objects)
    (ROOT / path).write_text(text, encoding="utf-8")


def read_files(listed):
    """{name: bytes} of [{"name", "path" | "text"}]."""
    return {entry["name"]: entry["text"].encode() if "text" in entry else (ROOT / entry["path"]).read_bytes()
            for entry in listed}


def load(path):
    return [Case(id=line["id"], category=line["category"], text=line["text"], language=line.get("language", "python"),
                 files=read_files(line.get("files", [])), fields=line) for line in read_jsonl(path)]


def select(cases, ids):
    """Those with the given ids ("da-3", or "da" for all of a category's), in the given order; all for no ids."""
    if not ids:
        return cases
    chosen = []
    for wanted in ids:
        found = [case for case in cases if wanted in (case.id, case.id.rsplit("-", 1)[0])]
        if not found:
            there = ", ".join(case.id for case in cases)
            endings.stop(endings.WRONG_USE, f"no case is called {wanted}; there are {there}")
        chosen += [case for case in found if case not in chosen]
    return chosen


def request_sha256(text, language, files):
    """The key of a request's recordings, as bench/README.md defines it."""
    def sized(value):
        data = value.encode() if isinstance(value, str) else value
        return str(len(data)).encode() + b" " + data

    lines = [b"sbx-request-v1", language.encode(), sized(text)]
    for name in sorted(files, key=str.encode):
        lines.append(hashlib.sha256(files[name]).hexdigest().encode() + b" " + sized(name))
    return hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()
