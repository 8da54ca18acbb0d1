"""Whether a result has the content that a case asks for. Each rule of a check returns its complaints; none is a pass.

A check knows nothing of the program: it gets the envelope and the collected files. bench/README.md lists its rules.
"""

import csv
import dataclasses
import io
import json

import png
import workbook
from cells import as_number, find_rows, is_number, matches, normalised, numbers_in
from envelope import artifact_name, as_table
from series import all_series, fits, holds_matrix, holds_points

MIN_WIDTH, MIN_HEIGHT = 320, 240
MIN_INK, MIN_MIDDLE_INK, BORDER = 0.01, 0.005, 0.25


@dataclasses.dataclass
class Answer:
    envelope: dict
    artifacts: dict     # {path below /output: bytes}

    def artifact(self):
        return self.artifacts.get(artifact_name(self.envelope))


def spoken(answer):
    """All the text that the person reads: data and note."""
    data = answer.envelope.get("data")
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{text}\n{answer.envelope.get('note') or ''}"


def check_rows(rule, answer):
    table = as_table(answer.envelope.get("data"))
    if table is None:
        return ["there is no table"]
    complaint = find_rows(rule["expect"], table[1], rule.get("ordered", False), rule.get("tolerance", 0.01))
    return [complaint] if complaint else []


def check_numbers(rule, answer):
    said = numbers_in(spoken(answer))
    tolerance = rule.get("tolerance", 0.01)
    return [f"{name} ({value}) is not told" for name, value in rule["expect"].items()
            if not any(abs(number - value) <= tolerance for number in said)]


def check_mentions(words, answer):
    text = normalised(spoken(answer))
    return [f"{word!r} is not mentioned" for word in words if normalised(word) not in text]


def check_series(wanted, answer):
    """`wanted` is a list of series that must all be there, or {"any_of": [such lists]}."""
    if isinstance(wanted, dict):
        tried = [check_series(choice, answer) for choice in wanted["any_of"]]
        return [] if [] in tried else tried[0]
    found = list(all_series(answer.envelope.get("data")))
    return [f"no series is {choice.get('name', '')} {choice['values']!r:.200}" for choice in wanted
            if not any(fits(choice, series) for series in found)]


def check_points(rule, answer):
    held = holds_points(rule["expect"], rule.get("tolerance", 0.01), answer.envelope.get("data"))
    return [] if held else [f"no series has the {len(rule['expect'])} points"]


def check_matrix(rule, answer):
    held = holds_matrix(rule["expect"], rule.get("tolerance", 0.01), answer.envelope.get("data"))
    return [] if held else ["no rectangle of numbers is the expected one"]


def check_picture(_, answer):
    try:
        picture = png.decode(answer.artifact() or b"")
    except ValueError as error:
        return [str(error)]
    complaints = []
    if picture.width < MIN_WIDTH or picture.height < MIN_HEIGHT:
        complaints.append(f"the picture has only {picture.width}×{picture.height} pixels")
    if picture.ink() < MIN_INK:
        complaints.append("the picture is blank")
    elif picture.ink(BORDER) < MIN_MIDDLE_INK:
        complaints.append("the picture is a frame with nothing in it")
    return complaints


def check_file(rule, answer):
    content = answer.artifact()
    if content is None:
        return ["there is no file"]
    complaints = []
    if "name" in rule and artifact_name(answer.envelope) != rule["name"]:
        complaints.append(f"the file is called {artifact_name(answer.envelope)!r} instead of {rule['name']!r}")
    for kind, reader in FILE_RULES.items():
        if kind in rule:
            try:
                complaints += reader(rule[kind], content)
            except (ValueError, csv.Error) as error:
                complaints.append(f"the file is no {kind}: {error}")
    return complaints


def check_csv(rule, content):
    rows = [row for row in csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")) if row]
    if not rows:
        return ["the file is empty"]
    if "columns" in rule and [normalised(cell) for cell in rows[0]] != [normalised(cell) for cell in rule["columns"]]:
        return [f"the columns are {rows[0]}"]
    complaint = find_rows(rule["expect"], rows[1:], rule.get("ordered", False), rule.get("tolerance", 0.01))
    if not complaint and "sorted_by" in rule:
        wanted, given = ([[row[column] for column in rule["sorted_by"]] for row in table]
                         for table in (rule["expect"], rows[1:]))
        complaint = wanted != given and "the rows are not sorted as asked"
    return [complaint] if complaint else []


def same_json(expected, actual, tolerance):
    if isinstance(expected, dict):
        return isinstance(actual, dict) and set(expected) == set(actual) and all(
            same_json(value, actual[key], tolerance) for key, value in expected.items())
    if isinstance(expected, list):
        return isinstance(actual, list) and len(expected) == len(actual) and all(
            same_json(left, right, tolerance) for left, right in zip(expected, actual))
    if is_number(expected):
        return is_number(actual) and abs(expected - actual) <= tolerance
    return type(expected) is type(actual) and expected == actual


def check_json(rule, content):
    actual = json.loads(content.decode("utf-8-sig"))
    if same_json(rule["expect"], actual, rule.get("tolerance", 0.01)):
        return []
    return [f"the JSON is {json.dumps(actual, ensure_ascii=False):.200}"]


def check_lines(expected, content):
    actual = [line.rstrip() for line in content.decode("utf-8-sig").rstrip().splitlines()]
    for number, (left, right) in enumerate(zip(expected, actual), 1):
        if left != right:
            return [f"line {number} is {right!r} instead of {left!r}"]
    return [] if len(expected) == len(actual) else [f"{len(actual)} lines instead of {len(expected)}"]


def check_sheets(expected, content):
    sheets = workbook.read(content)
    if list(expected) != list(sheets):
        return [f"the sheets are {list(sheets)}"]
    complaints = []
    for name, rule in expected.items():
        sheet = sheets[name]
        if not sheet.bold_header:
            complaints.append(f"{name}: the header is not bold")
        if len(sheet.rows) != rule["orders"] + 2:
            complaints.append(f"{name}: {len(sheet.rows)} rows, not a header, {rule['orders']} orders and a total")
        elif not any(matches(rule["total"], as_number(cell), 0.011) for cell in sheet.rows[-1]):
            complaints.append(f"{name}: the last row is {sheet.rows[-1]}, without the total {rule['total']}")
    return complaints


def check_text_lines(expected, answer):
    return check_lines(expected, str(answer.envelope.get("data")).encode())


FILE_RULES = {"csv": check_csv, "json": check_json, "lines": check_lines, "sheets": check_sheets}
RULES = {"rows": check_rows, "numbers": check_numbers, "mentions": check_mentions, "series": check_series,
         "points": check_points, "matrix": check_matrix, "picture": check_picture, "file": check_file,
         "text_lines": check_text_lines}


def complaints(check, answer):
    """All that is wrong with an answer; an empty list is a pass."""
    found = []
    if answer.envelope["type"] not in check["type"]:
        found.append(f"the result is a {answer.envelope['type']}, not {' or '.join(check['type'])}")
    for name, rule in check.items():
        if name != "type":
            found += RULES[name](rule, answer)
    return found
