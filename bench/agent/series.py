"""Finding the series that a chart says it shows in the envelope's data, whatever form the program gave them."""

import dataclasses

from cells import as_number, is_number, matches, normalised
from envelope import as_table


@dataclasses.dataclass
class Series:
    name: str       # the keys and texts that lead to it, joined
    labels: tuple   # as many as values, or None
    values: tuple


def numeric(values):
    """Whether these are numbers, gaps allowed."""
    return bool(values) and all(value is None or is_number(value) for value in values) and any(
        value is not None for value in values)


def textual(values):
    return bool(values) and all(isinstance(value, str) for value in values)


def scalar(values):
    return bool(values) and all(isinstance(value, str) or is_number(value) for value in values)


def of_columns(columns, name):
    """Series of equally long named columns: each numeric one, alone and beside each that may label it."""
    for title, values in columns.items():
        if not numeric(values):
            continue
        full_name = f"{name} {title}"
        yield Series(full_name, None, tuple(values))
        for other, labels in columns.items():
            if other != title and scalar(labels):
                yield Series(full_name, tuple(labels), tuple(values))
                yield from of_groups(columns, title, other, full_name)


def of_groups(columns, title, labelling, name):
    """Series of a long table, where a third column says which series a row belongs to."""
    for other, groups in columns.items():
        if other in (title, labelling) or not textual(groups) or len(set(groups)) == len(groups):
            continue
        for group in dict.fromkeys(groups):
            chosen = [index for index, value in enumerate(groups) if value == group]
            yield Series(f"{name} {group}", tuple(columns[labelling][index] for index in chosen),
                         tuple(columns[title][index] for index in chosen))


def all_series(data, name="", depth=0):
    if depth > 6:
        return
    table = as_table(data)
    if table and table[1]:
        titles, rows = table
        if all(len(row) == len(titles) for row in rows):
            yield from of_columns({title: [row[index] for row in rows] for index, title in enumerate(titles)}, name)
    if isinstance(data, dict):
        values = list(data.values())
        if numeric(values):
            yield Series(name, tuple(data), tuple(values))
        lists = {key: value for key, value in data.items() if isinstance(value, list)}
        texts = " ".join(value for value in values if isinstance(value, str))
        for length in {len(value) for value in lists.values()}:
            equal = {key: value for key, value in lists.items() if len(value) == length}
            yield from of_columns(equal, f"{name} {texts}")
        if values and all(isinstance(value, dict) for value in values):
            yield from all_series([{"": key} | value for key, value in data.items()], name, depth + 1)
        for key, value in data.items():
            yield from all_series(value, f"{name} {texts} {key}", depth + 1)
    elif isinstance(data, list):
        if numeric(data):
            yield Series(name, None, tuple(data))
        elif data and all(isinstance(item, list) and len(item) == len(data[0]) for item in data):
            yield from of_columns({str(index): list(column) for index, column in enumerate(zip(*data))}, name)
        for item in data:
            if isinstance(item, (dict, list)):
                yield from all_series(item, name, depth + 1)


def same_labels(expected, actual):
    if is_number(expected):
        return as_number(actual) == float(expected)
    wanted, given = normalised(expected), normalised(actual)
    # A date may come with a time of midnight.
    return wanted == given or given in (wanted + " 00:00:00", wanted + "t00:00:00", wanted + "t00:00:00.000")


def fits(wanted, found):
    """Whether a series holds the expected values; labels, order and the rest as the check asks for."""
    values = list(found.values)
    labels = list(found.labels) if found.labels is not None else None
    if "name" in wanted and normalised(wanted["name"]) not in normalised(found.name):
        return False
    if "labels" in wanted and labels is None:
        return False
    kept = [index for index, value in enumerate(values) if value is not None]
    if wanted.get("trim_zeros"):
        filled = [index for index in kept if values[index]]
        kept = [index for index in kept if filled and filled[0] <= index <= filled[-1]]
    pairs = [(labels[index] if "labels" in wanted else None, values[index]) for index in kept]
    if len(pairs) != len(wanted["values"]):
        return False
    if wanted.get("share"):
        total, given = sum(wanted["values"]), sum(value for _, value in pairs)
        pairs = [(label, value * total / given) for label, value in pairs] if given else pairs
    return same_pairs(wanted, pairs)


def same_pairs(wanted, pairs):
    tolerance = wanted.get("tolerance", 0.01)
    expected = list(zip(wanted.get("labels", [None] * len(wanted["values"])), wanted["values"]))

    def same(left, right):
        return (left[0] is None or same_labels(left[0], right[0])) and matches(left[1], right[1], tolerance)

    if wanted.get("ordered", True):
        return all(same(left, right) for left, right in zip(expected, pairs))
    rest = list(pairs)
    for pair in expected:
        found = next((index for index, other in enumerate(rest) if same(pair, other)), None)
        if found is None:
            return False
        del rest[found]
    return True


def holds_points(expected, tolerance, data):
    """Whether two columns of equal length somewhere in the data hold exactly these points, in any order."""
    points = {"labels": [point[0] for point in expected], "values": [point[1] for point in expected]}
    for found in all_series(data):
        if found.labels is None or len(found.values) != len(expected) or not all(is_number(x) for x in found.labels):
            continue
        rest = list(zip(found.labels, found.values))
        for x, y in zip(points["labels"], points["values"]):
            index = next((index for index, pair in enumerate(rest)
                          if matches(x, pair[0], tolerance) and matches(y, pair[1], tolerance)), None)
            if index is None:
                break
            del rest[index]
        if not rest:
            return True
    return False


def matrices(data, depth=0):
    """Every rectangle of numbers in the data: lists of lists, or objects of lists or objects."""
    if depth > 4 or not isinstance(data, (dict, list)):
        return
    outer = list(data.values()) if isinstance(data, dict) else data
    rows = [list(item.values()) if isinstance(item, dict) else item for item in outer]
    rows = [[cell for cell in row if not isinstance(cell, str)] for row in rows if isinstance(row, list)]
    if len(rows) > 1 and len(rows) == len(outer) and len({len(row) for row in rows}) == 1 and all(
            row and all(is_number(cell) for cell in row) for row in rows):
        yield rows
    for item in outer:
        yield from matrices(item, depth + 1)


def holds_matrix(expected, tolerance, data):
    turned = [list(column) for column in zip(*expected)]
    return any(len(found) == len(wanted) and all(
        len(left) == len(right) and all(matches(x, y, tolerance) for x, y in zip(left, right))
        for left, right in zip(wanted, found)) for found in matrices(data) for wanted in (expected, turned))
