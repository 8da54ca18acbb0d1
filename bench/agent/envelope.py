"""What a model's reply and a program's output must be: one fenced block in, one line of JSON out.

This reads them with nothing of agentd's, so that the recordings can be verified without it, and agentd against them.
"""

import json
import re

TYPES = ("table", "chart", "text", "file")
FENCE = re.compile(r"^```[ \t]*([\w+#.-]*)[^\n`]*$")


class NoProgram(Exception):
    """The reply holds no program, or no single one."""


def extract_program(reply, finish_reason="stop"):
    """The text of the only block; one without a closing fence counts, unless the reply was cut for its length."""
    blocks, current = [], None
    for line in reply.replace("\r\n", "\n").split("\n"):
        fence = FENCE.match(line)
        if current is None and fence:
            current = []
        elif current is not None and line.rstrip() == "```":
            blocks.append("\n".join(current) + "\n")
            current = None
        elif current is not None:
            current.append(line)
    if current is not None:
        if finish_reason == "length":
            raise NoProgram("the reply was cut before its block ended")
        blocks.append("\n".join(current) + "\n")
    if len(blocks) != 1:
        raise NoProgram(f"the reply has {len(blocks)} code blocks")
    return blocks[0]


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON number")


def refuse_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key is there twice")
    return dict(pairs)


def parse_envelope(stdout, collected):
    """The envelope, or ValueError saying which rule its output breaks. `collected` holds the paths found in /output."""
    lines = [line for line in stdout.splitlines() if line.strip()]
    if not lines:
        raise ValueError("the program printed nothing")
    try:
        envelope = json.loads(lines[-1], parse_constant=refuse_constant, object_pairs_hook=refuse_duplicates)
    except ValueError as error:
        raise ValueError(f"the last line is no JSON: {error}") from None
    if not isinstance(envelope, dict):
        raise ValueError("the last line is no JSON object")
    if envelope.get("type") not in TYPES:
        raise ValueError(f"the type is {envelope.get('type')!r}")
    if envelope["type"] in ("chart", "file"):
        if artifact_name(envelope) not in collected:
            raise ValueError(f"there is no artifact {envelope.get('artifact_path')!r}")
    elif envelope["type"] == "text" and not isinstance(envelope.get("data"), str):
        raise ValueError("a text's data is no string")
    elif envelope["type"] == "table" and as_table(envelope.get("data")) is None:
        raise ValueError("a table's data are no rows")
    return envelope


def artifact_name(envelope):
    """The artifact's path below /output, or None when it lies elsewhere."""
    path = envelope.get("artifact_path")
    if not isinstance(path, str) or not path.startswith("/output/"):
        return None
    return path.removeprefix("/output/")


def as_table(data):
    """(columns, rows) of {"columns", "rows"} or of a list of objects; None for anything else."""
    if isinstance(data, dict) and isinstance(data.get("columns"), list) and isinstance(data.get("rows"), list):
        if all(isinstance(row, list) for row in data["rows"]):
            return [str(column) for column in data["columns"]], data["rows"]
    if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        columns = list(dict.fromkeys(key for row in data for key in row))
        return columns, [[row.get(column) for column in columns] for row in data]
    return None
