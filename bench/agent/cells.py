"""Comparing what a program reports with what is expected: single cells, and rows of them."""

import itertools
import math
import re

NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")


def normalised(value):
    return " ".join(str(value).replace("\u2212", "-").split()).casefold()


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def as_number(value):
    """The number in a cell, also when it is written with separators, a currency or a unit; None when there is none."""
    if is_number(value):
        return float(value)
    if not isinstance(value, str):
        return None
    found = NUMBER.findall(value.replace("\u2212", "-"))
    return float(found[0].replace(",", "")) if len(found) == 1 else None


def numbers_in(text):
    return [float(found.replace(",", "")) for found in NUMBER.findall(text.replace("\u2212", "-"))]


def matches(expected, actual, tolerance):
    if expected is None:
        return actual is None or actual == "" or normalised(actual) in ("nan", "none", "-", "n/a")
    if is_number(expected):
        number = as_number(actual)
        return number is not None and abs(number - expected) <= tolerance
    return normalised(expected) == normalised(actual)


def row_matches(expected, actual, tolerance):
    return all(matches(left, right, tolerance) for left, right in zip(expected, actual))


def same_rows(expected, actual, ordered, tolerance):
    if len(expected) != len(actual):
        return False
    if ordered:
        return all(row_matches(left, right, tolerance) for left, right in zip(expected, actual))
    rest = list(actual)
    for row in expected:
        found = next((index for index, other in enumerate(rest) if row_matches(row, other, tolerance)), None)
        if found is None:
            return False
        del rest[found]
    return True


def find_rows(expected, rows, ordered, tolerance):
    """None when some choice of the table's columns holds exactly the expected rows; else what is wrong.

    A program may name and order its columns as it likes, and have more of them: each column that is expected is looked
    for among those whose cells all fit it, and all together must agree row by row.
    """
    if len(rows) != len(expected):
        return f"{len(rows)} rows instead of {len(expected)}"
    width = max((len(row) for row in rows), default=0)
    rows = [list(row) + [None] * (width - len(row)) for row in rows]
    fitting = []
    for number in range(len(expected[0])):
        wanted = [[row[number]] for row in expected]
        fitting.append([column for column in range(width)
                        if same_rows(wanted, [[row[column]] for row in rows], ordered, tolerance)])
        if not fitting[-1]:
            return f"no column holds {[row[number] for row in expected]!r:.300}"
    for choice in itertools.product(*fitting):
        if len(set(choice)) == len(choice):
            if same_rows(expected, [[row[column] for column in choice] for row in rows], ordered, tolerance):
                return None
    return "the columns do not belong together row by row"
